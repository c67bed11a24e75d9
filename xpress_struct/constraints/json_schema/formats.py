"""Texts that this library writes for the formats it knows.

Each pattern is a subset of what the specification of the format takes, so that every validator agrees;
what is left out is named beside it. A format that is not here is an annotation.
"""

from __future__ import annotations

from functools import lru_cache

from . import regular as rx
from .regex_text import language

__all__ = ["FORMATS", "UNWRITTEN", "format_language"]

_MONTH_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_LEAP_YEAR = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
_YEAR = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})"  # Python's dates begin with year 1
_DATE = f"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?"
_ZONE = "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_LONG_LABEL = "[a-zA-Z0-9]{1,14}(?:-[a-zA-Z0-9]{1,14}){0,3}"
_SHORT_LABEL = "[a-zA-Z0-9]{1,13}(?:-[a-zA-Z0-9]{1,13})?"
_HOSTNAME = f"(?:{_LONG_LABEL}(?:\\.{_LONG_LABEL}){{0,3}}|{_SHORT_LABEL}(?:\\.{_SHORT_LABEL}){{4,7}})"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = f"(?:{_OCTET}\\.){{3}}{_OCTET}"
_H16 = "[0-9a-fA-F]{1,4}"
_IPV6 = (
    f"(?:(?:{_H16}:){{7}}{_H16}|::(?:(?:{_H16}:){{0,6}}{_H16})?|"
    + "|".join(f"(?:{_H16}:){{{n}}}:(?:(?:{_H16}:){{0,{6 - n}}}{_H16})?" for n in range(1, 7))
    + f"|(?:{_H16}:){{7}}:)"
)
_ATOM = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+"
# Bounded so that Python's timedelta and pydantic hold the sum.
_DAY_PART = "(?:[0-9]{1,8}D|[0-9]{1,5}M(?:[0-9]{1,8}D)?|[0-9]{1,4}Y(?:[0-9]{1,5}M(?:[0-9]{1,8}D)?)?)"
_TIME_PART = "T(?:[0-9]{1,7}S|[0-9]{1,7}M(?:[0-9]{1,7}S)?|[0-9]{1,6}H(?:[0-9]{1,7}M(?:[0-9]{1,7}S)?)?)"
_PCHAR = "(?:[a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})"
_HOST = f"(?:(?:[a-zA-Z0-9._~-]|%[0-9a-fA-F]{{2}})+|\\[{_IPV6}\\])"
_AUTHORITY = f"//(?:(?:[a-zA-Z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{{2}})*@)?{_HOST}(?::[0-9]{{1,5}})?"
_QUERY = f"(?:\\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_PATH = f"(?:/{_PCHAR}*)*"
_SCHEME = "[a-zA-Z][a-zA-Z0-9+.-]*"
_ROOTLESS = f"{_PCHAR}+{_PATH}"
_ABSOLUTE = f"/(?:{_PCHAR}+{_PATH})?"
_NO_COLON = "(?:[a-zA-Z0-9._~!$&'()*+,;=@-]|%[0-9a-fA-F]{2})+"
_LOCAL = f"//(?:/{_PCHAR}*)+"  # no host: file:///etc/hosts
_URI = f"{_SCHEME}:(?:{_AUTHORITY}{_PATH}|{_LOCAL}|{_ABSOLUTE}|{_ROOTLESS}){_QUERY}"
_RELATIVE = f"(?:{_AUTHORITY}{_PATH}|{_ABSOLUTE}|{_NO_COLON}{_PATH})?{_QUERY}"
_POINTER = "(?:/(?:[^~/\\x00-\\x1f]|~[01])*)*"
_TEMPLATE_NAME = "[a-zA-Z0-9_]+(?:\\.[a-zA-Z0-9_]+)*(?:\\*|:[1-9][0-9]{0,3})?"

FORMATS: dict[str, str] = {
    "date": _DATE,
    # no leap second, at most nine digits of a second, upper-case T and Z
    "date-time": f"{_DATE}T{_CLOCK}{_ZONE}",
    "time": f"{_CLOCK}{_ZONE}",
    # at most 4 digits of years, 5 of months, 6 of weeks and hours, 8 of days, 7 of minutes and seconds
    "duration": f"P(?:{_DAY_PART}(?:{_TIME_PART})?|{_TIME_PART}|[0-9]{{1,6}}W)",
    # dotted local part and a host name: no quoted part, no address literal
    "email": f"{_ATOM}(?:\\.{_ATOM})*@{_LABEL}(?:\\.{_LABEL})*",
    # no double hyphen (so no punycode), runs of at most 14 characters, at most 8 labels
    "hostname": _HOSTNAME,
    "ipv4": _IPV4,
    # no embedded IPv4 address, no zone
    "ipv6": _IPV6,
    "uuid": "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}",
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "iri": _URI,
    "iri-reference": f"(?:{_URI}|{_RELATIVE})",
    "idn-email": f"{_ATOM}(?:\\.{_ATOM})*@{_LABEL}(?:\\.{_LABEL})*",
    "idn-hostname": _HOSTNAME,
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]{{0,9}})(?:#|{_POINTER})",
    "uri-template": f"(?:[a-zA-Z0-9._~:/?#@!$&()*+,;=-]|\\{{[+#./;?&]?{_TEMPLATE_NAME}"
    f"(?:,{_TEMPLATE_NAME})*\\}})*",
}


UNWRITTEN = frozenset({"regex"})
"""Formats of the standard that validators assert and that are checked after generation."""


@lru_cache(maxsize=64)
def format_language(name: str) -> rx.Regex | None:
    """The texts written for format `name`; None when the format is not known."""
    pattern = FORMATS.get(name)
    return None if pattern is None else language(f"^(?:{pattern})$")
