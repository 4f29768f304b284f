"""Bugs planted in the density of learned scales."""

import jax.numpy as jnp

from widebnn.targets import LogNormal, Scaled

from ..exact import scales
from ..exact.planted import caught, passed


class PowersOfTen(LogNormal):
    """log₁₀ s normal in place of log s."""

    def at(self, u):
        return self.median * 10 ** (self.spread * jnp.clip(u, -3, 3))


class NormaliserForgotten(Scaled):
    """The potential at the scales alone."""

    def potential(self, position):
        return super().potential(position) - self.at(position).log_normaliser()


class PriorForgotten(Scaled):
    """Without ½‖u‖² − ½‖v‖², as if the Gaussian were the prior."""

    def potential(self, position):
        u = jnp.stack([*self._coordinates(position).values()])
        v = jnp.stack([*position.scales.values()])
        return super().potential(position) - (u @ u - v @ v) / 2


class JacobianForgotten(Scaled):
    """Without log det L, which the evidence needs."""

    def potential(self, position):
        return super().potential(position) + jnp.sum(jnp.log(jnp.diag(self.reference.factor)))


def checked(kind=Scaled, prior=LogNormal):
    def check():
        right = scales.target_of(*scales.data()[:2])
        priors = {name: prior(*one) for name, one in right.priors.items()}
        scales.assert_density(kind(right.base, priors, right.limiting_scales()))

    return check


test_bug_is_caught = caught(
    (
        "density of scales",
        "the log density is",
        {
            "prior in powers of ten": checked(prior=PowersOfTen),
            "normaliser forgotten": checked(NormaliserForgotten),
            "prior of the scales forgotten": checked(PriorForgotten),
            "Jacobian forgotten": checked(JacobianForgotten),
        },
    ),
    patched=False,
)

test_right_one_of_the_same_make_passes = passed(density=checked())
