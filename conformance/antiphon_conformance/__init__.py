"""The rules of the canonical Responses event stream."""
