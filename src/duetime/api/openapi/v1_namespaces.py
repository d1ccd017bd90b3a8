"""The part of the OpenAPI document that is about the namespaces and endpoints of the v1 API."""

from duetime.api.http.constraints import KEY_TEXT
from duetime.api.openapi import v1_answers as answers
from duetime.api.openapi import v1_examples as examples
from duetime.api.openapi.parts import Json, json_body, path_parameter
from duetime.api.openapi.v1_answers import failures, ok

TAG = "Namespaces v1"
DESCRIPTION = "Scopes of ids, each with what holds for its timers."


def paths() -> dict[str, Json]:
    return {
        "/api/v1/namespaces": {"get": _list()},
        "/api/v1/namespaces/{name}": {
            "parameters": [_name_parameter()],
            "get": _get(),
            "put": _put(),
        },
    }


def endpoint_paths(tag: str) -> dict[str, Json]:
    return {"/api/v1/endpoints": {"get": _endpoints(tag)}}


def _list() -> Json:
    return {
        "operationId": "listNamespacesV1",
        "tags": [TAG],
        "summary": "List the namespaces",
        "responses": {
            "200": ok(
                "All namespaces, in the order of their names.",
                "V1NamespaceListAnswer",
                {"Namespaces": {"namespaces": [examples.NAMESPACE_IN_LIST]}},
            ),
            **failures(answers.UNKNOWN_PARAMETER),
        },
    }


def _get() -> Json:
    return {
        "operationId": "getNamespaceV1",
        "tags": [TAG],
        "summary": "Get a namespace and how many timers it has",
        "responses": {
            "200": ok(
                "The namespace.", "V1NamespaceAnswer", {"Namespace": examples.NAMESPACE_ANSWER}
            ),
            **failures(answers.NO_NAMESPACE),
        },
    }


def _put() -> Json:
    return {
        "operationId": "putNamespaceV1",
        "tags": [TAG],
        "summary": "Create or change a namespace",
        "description": "What is absent stays as it is, and has its default in a new namespace. "
        "The number of shards is fixed once the namespace exists.",
        "requestBody": json_body("V1NamespaceBody", {"All members": examples.NAMESPACE_BODY}),
        "responses": {
            "200": ok(
                "The namespace as it is now.",
                "V1NamespaceAnswer",
                {"Namespace": examples.NAMESPACE_ANSWER},
            ),
            **failures(answers.INVALID_SHARDS, answers.TOO_LARGE),
        },
    }


def _endpoints(tag: str) -> Json:
    return {
        "operationId": "listEndpointsV1",
        "tags": [tag],
        "summary": "List the endpoints that are called",
        "description": "As the node that answers sees them: each node calls them by itself. Listed "
        "are endpoints that are being called or waited for, and for 10 minutes after their last "
        "call those that could not be reached, gave no valid answer in time, or answered with 5xx, "
        "408 or 429. Other failures, such as a 404, are the timer's and not the endpoint's.",
        "responses": {
            "200": ok(
                "The endpoints.", "V1EndpointListAnswer", {"One is open": examples.ENDPOINTS}
            ),
            **failures(answers.UNKNOWN_PARAMETER),
        },
    }


def _name_parameter() -> Json:
    return path_parameter(
        "name",
        "The namespace's name. It may contain any characters, percent-encoded in UTF-8; a slash "
        "is `%2F`.",
        {"type": "string", **KEY_TEXT},
        examples.OTHER_NAMESPACE,
    )
