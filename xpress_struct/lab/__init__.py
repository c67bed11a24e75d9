"""The lab: what is measured about decoding, not how to decode."""
