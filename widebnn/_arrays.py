"""What a user may hand over as data: arrays of JAX or of NumPy."""

import numpy as np
from jaxtyping import Array, Float

__all__ = ["Inputs", "NewInputs", "Observations"]

Inputs = Float[Array | np.ndarray, "n ..."]
"""x, one row an observation."""

NewInputs = Float[Array | np.ndarray, "m ..."]
"""x*, one row a prediction."""

Observations = Float[Array | np.ndarray, "n d_out"]
"""y."""
