"""Text that Spark reads: names that quote themselves, places on an axis, partial columns."""
