"""The OpenAPI document of both APIs."""
