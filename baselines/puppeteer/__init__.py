"""Puppeteer (Dang et al. 2025): a learned policy says which agent of one backbone speaks next (docs/baselines.md)."""

from baselines.puppeteer.method import Puppeteer, build
from baselines.puppeteer.policy import Config

__all__ = ["Config", "Puppeteer", "build"]
