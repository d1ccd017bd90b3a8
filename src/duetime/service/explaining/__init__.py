"""Explains why a timer fired when it did, or why it has not yet."""

from duetime.service.explaining.explaining import Explaining, Report
from duetime.service.explaining.explanation import AttemptExplanation, Explanation, Period
from duetime.service.explaining.sentences import advice_of, length_text
from duetime.service.explaining.timeline import attempts_of_firing

__all__ = [
    "AttemptExplanation",
    "Explaining",
    "Explanation",
    "Period",
    "Report",
    "advice_of",
    "attempts_of_firing",
    "length_text",
]
