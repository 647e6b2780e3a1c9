"""A pass of the router written a second time, in plain NumPy."""

import math
from typing import Any

import numpy as np
from scipy.special import gammaln

from baselines.masrouter.router import Router, Trace

Array = Any


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def _unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def _layer_norm(row: Array) -> Array:
    return (row - row.mean()) / math.sqrt(row.var() + 1e-5)


class Reference:
    """The probabilities behind a trace, the number of agents before it is rounded, and log π of the choices."""

    def __init__(self, router: Router, trace: Trace) -> None:
        self._state = {name: value.numpy() for name, value in router.state_dict().items()}
        self._trace = trace
        noise, choices = trace.noise, trace.choices
        q = trace.question.astype(np.float64)
        x = _unit(self._linear("classifier.question", q))
        self.tasks = _softmax(_unit(self._linear("classifier.tasks", self._state["task_texts"])) @ x / 0.5)
        modes = self._z("mode_vae", self._state["mode_texts"], noise.modes)
        self.modes = _softmax(modes @ self._z("question_vae", q, noise.question[0]) / 0.8)
        difficulty = self._linear("number.head", self._z("number.vae", q, noise.number[0]))[0]
        self.n_f = 6 / (1 + math.exp(-difficulty))
        roles = self._z("role_vae", self._state["role_texts"], noise.roles)
        h, before, self.roles = np.zeros(64), np.zeros(64), []
        for role in choices.roles:
            h = _layer_norm(h + before)
            self.roles.append(self._matched("role", np.concatenate([x, modes[choices.mode], h]), roles, 0.5))
            before = roles[role]
        backbones = self._z("backbone_vae", self._state["backbone_texts"], noise.backbones)
        self.backbones = self._matched("backbone", np.concatenate([x, modes[choices.mode], h]), backbones, 1.0)
        counts = np.bincount(choices.backbones, minlength=len(backbones))
        self.log_prob = (
            math.log(self.modes[choices.mode])
            + sum(math.log(p[role]) for p, role in zip(self.roles, choices.roles, strict=True))
            + gammaln(self.n_f + 1)
            - sum(gammaln(count + 1) for count in counts)
            + sum(count * math.log(p) for count, p in zip(counts, self.backbones, strict=True))
        )

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._state[f"{name}.weight"].T + self._state[f"{name}.bias"]

    def _z(self, vae: str, x: Array, noise: Any) -> Array:
        hidden = np.maximum(self._linear(f"{vae}.encoder.0", x), 0)
        mu, logvar = self._linear(f"{vae}.mu", hidden), self._linear(f"{vae}.logvar", hidden)
        return _unit(mu + 0.1 * np.exp(0.5 * logvar) * noise.numpy())

    def _matched(self, kind: str, context: Array, choices: Array, temperature: float) -> Array:
        return _softmax(choices @ _unit(self._linear(f"{kind}_matching.context", context)) / temperature)
