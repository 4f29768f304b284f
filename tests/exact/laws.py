"""The proposals q(u → ·) of the reversible samplers as the theory has them: (u, ∇U(u)) ↦ mean, deviation."""

import math


def rwm(beta):
    return lambda u, g: (u, beta)


def pcn(beta):
    return lambda u, g: (math.sqrt(1 - beta**2) * u, beta)


def mala(eps):
    return lambda u, g: (u - eps**2 / 2 * (u + g), eps)


def pcnl(beta):
    delta = 2 * (1 - math.sqrt(1 - beta**2)) / (1 + math.sqrt(1 - beta**2))
    return lambda u, g: (((2 - delta) * u - 2 * delta * g) / (2 + delta), math.sqrt(8 * delta) / (2 + delta))
