"""The OpenAPI document of both APIs, made from their operations."""
