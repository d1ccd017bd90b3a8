"""From the bodies of the platform API to the arguments of the service."""

from typing import assert_never

from duetime.api.http.decoding import BodyDecoder
from duetime.api.http.values import due_of, metadata_of, retry_policy_of
from duetime.api.platform.types import (
    CallbackBody,
    CreateTimerBody,
    HttpCallbackBody,
    NatsCallbackBody,
    UpdateTimerBody,
)
from duetime.domain.callback import Callback, HttpCallback, NatsCallback
from duetime.domain.namespace import DEFAULT_NAMESPACE
from duetime.service.create_requests import NewTimer

_CHOICES = {"callback.type": "'http' or 'nats'"}

decode_create = BodyDecoder(CreateTimerBody, _CHOICES).decode
decode_update = BodyDecoder(UpdateTimerBody, _CHOICES).decode


def new_timer_of(body: CreateTimerBody, namespace: str = DEFAULT_NAMESPACE) -> NewTimer:
    policy = body.retry_policy
    return NewTimer(
        namespace=namespace,
        execute_at=due_of(body.execute_at, body.execute_in),
        callback=callback_of(body.callback),
        metadata=metadata_of(body.metadata),
        retry_policy=None if policy is None else retry_policy_of(policy),
        idempotency_key=body.idempotency_key,
    )


def callback_of(body: CallbackBody) -> Callback:
    match body:
        case HttpCallbackBody():
            return HttpCallback(url=body.url, headers=body.headers, payload=body.payload)
        case NatsCallbackBody():
            return NatsCallback(
                topic=body.topic,
                key=body.key,
                headers=body.headers,
                payload=body.payload,
                ack=body.ack,
            )
        case _ as unreachable:
            assert_never(unreachable)
