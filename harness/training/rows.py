"""Products whose rows do not show which others they were computed with.

A matrix product of many rows rounds by their number: which kernel computes a row, and how it splits a sum, follow from
the size of the whole. A policy that samples one trajectory at a time and is differentiated for a whole batch needs the
same bits in both, so here every row has a product of its own, of one shape.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def by_row(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product x Wᵀ + b, shape (rows, k, out), for x of shape (rows, k, in), each row of k lines on its own."""
    return _ByRow.apply(x, weight, bias) if torch.is_grad_enabled() else _by_row(x, weight, bias)


class Linear(nn.Linear):
    """A linear layer that computes row by row: x of shape (rows, in), or (rows, k, in)."""

    def forward(self, x: Tensor) -> Tensor:
        """Shape (rows, out), or (rows, k, out)."""
        if x.dim() == 3:
            return by_row(x, self.weight, self.bias)
        return by_row(x.unsqueeze(1), self.weight, self.bias).squeeze(1)


def _by_row(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    weights = weight.T.expand(len(x), -1, -1)
    return torch.bmm(x, weights) if bias is None else torch.baddbmm(bias.expand(*x.shape[:2], -1), x, weights)


class _ByRow(torch.autograd.Function):
    """Gradients are of the sum over all rows anyway; torch's own would hold a copy of the weights for each row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _by_row(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None]:
        x, weight = ctx.saved_tensors
        flat = grads[0].flatten(0, 1)
        of_x = (flat @ weight).view(x.shape) if ctx.needs_input_grad[0] else None
        return of_x, flat.T @ x.flatten(0, 1), flat.sum(dim=0) if ctx.needs_input_grad[2] else None
