"""Thin extras: filters and prompts for handoffs."""
