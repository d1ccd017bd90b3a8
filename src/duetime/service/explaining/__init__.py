"""Explains why a timer fired when it did, or why it has not yet."""

from duetime.service.explaining.explaining import Explaining, Report
from duetime.service.explaining.explanation import AttemptExplanation, Explanation, Period

__all__ = ["AttemptExplanation", "Explaining", "Explanation", "Period", "Report"]
