"""The one place where the adapters meet the core: a service process is made from settings."""

import os
from functools import partial
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from duetime.api.app import ApiRules, Services, create_app
from duetime.api.metrics.metrics_app import Metrics
from duetime.broker_adapters import bus_of, nats_of
from duetime.bus.asyncapi import asyncapi_document
from duetime.bus.bus_router import BusRouter
from duetime.bus.command_audit import CommandAudit
from duetime.bus.events import EventDestination
from duetime.callback_adapters import callback_destination, callback_timeout_ms, http_destination
from duetime.clock import SystemClock, thread_seconds
from duetime.delivery.endpoint_names import endpoint_named
from duetime.delivery.signing import make_signer
from duetime.descriptors import descriptor_budget, raise_descriptor_limit
from duetime.engine import Engine
from duetime.engine.meters import EngineMeters
from duetime.engine_settings import engine_options
from duetime.listener import OwnAddresses
from duetime.ports.bulk import BulkStore
from duetime.ports.destination import Destination
from duetime.ports.store import TimerStore
from duetime.reports.health import health_of, report_of
from duetime.reports.loop_lag import LoopLag
from duetime.reports.metrics import timer_metrics
from duetime.reports.process_metrics import process_recorders
from duetime.reports.reporting import Reporting
from duetime.reports.scrapes import Scrapes
from duetime.reports.store_metrics import StoreWatch
from duetime.sealing.callbacks import CallbackSealer
from duetime.sealing.sealer import Sealer
from duetime.sealing.webhook_secrets import SecretSealer
from duetime.server.door import api_door
from duetime.server.worker_metrics import WorkerMetrics
from duetime.service.bulk.chosen import ChosenTimers
from duetime.service.bulk.operations import BulkOperations
from duetime.service.bulk.runner import BulkRunner
from duetime.service.bus_scheduling import Scheduling
from duetime.service.endpoints.endpoints import Endpoints, PauseWatch
from duetime.service.explaining import Explaining, Report
from duetime.service.known_namespaces import KnownNamespaces
from duetime.service.namespaces import NamespaceRefresher, Namespaces
from duetime.service.pending_limits import LimitedCreates
from duetime.service.redriving import Redriving
from duetime.service.reporting.objectives import Objectives
from duetime.service.restoring import Restoring
from duetime.service.sealing_store import with_sealed_contents
from duetime.service.searching.searching import Searching
from duetime.service.security.audit_log import AuditLog, Sampling
from duetime.service.security.credential_watch import CredentialWatch
from duetime.service.security.key_ring import KeyLimits, KeyRing
from duetime.service.security.key_uses import KeyUses
from duetime.service.security.keys import Keys
from duetime.service.security.known_signers import KnownSigners
from duetime.service.security.sessions import Sessions
from duetime.service.security.webhook_secrets import WebhookSecrets
from duetime.service.timer_service import TimerService
from duetime.service.trying.inbox import Inbox
from duetime.service.trying.trial_creates import TrialCreates
from duetime.service.turns import Turns
from duetime.service.validation import TimerRules
from duetime.service_process import Duetime
from duetime.settings import Settings
from duetime.store_adapters import cluster_of, store_of
from duetime.telemetry.metrics.recording import LabelValues
from duetime.telemetry.metrics.registry import Registry
from duetime.telemetry.metrics.requests import RequestMetrics
from duetime.telemetry.traces.starting import spans_of
from duetime.web.web_ui import WebParts, WebUi


def assemble(
    settings: Settings, own: OwnAddresses | None = None, workers: WorkerMetrics | None = None
) -> Duetime:
    """Put a service process together, which listens on its `own` addresses. One of several
    `workers` shows the metrics of all. Nothing is opened, connected or started yet."""
    clock = SystemClock()
    labels = LabelValues(settings.metrics_namespaces)
    store_watch = StoreWatch(settings, store_of(settings), clock, labels)
    store = store_watch.store
    raise_descriptor_limit()
    budget = descriptor_budget()
    options = engine_options(settings, clock, budget)
    spans = spans_of(os.environ, options.owner, clock)
    nats = None if settings.nats is None else nats_of(settings.nats, clock)
    bus = None if settings.broker is None else bus_of(settings.broker, options.owner, clock)
    events = None if bus is None else EventDestination(bus, clock)
    sealer = Sealer(settings.encryption_keys or ())
    secret_sealer, callback_sealer = SecretSealer(sealer), CallbackSealer(sealer)
    signers = KnownSigners(
        clock,
        make_signer,
        configured=settings.webhook_secrets or (),
        open_secret=secret_sealer.text_of,
    )
    credential_watch = CredentialWatch(store.security, clock)
    credential_watch.subscribe(signers.see)
    limits = KeyLimits(settings.key_rate_limit, settings.key_max_concurrent)
    key_ring = KeyRing(credential_watch, clock, limits)
    keys = Keys(store.security, credential_watch, key_ring, clock)
    sessions = Sessions(store.security, credential_watch, key_ring, clock, settings.api_key)
    known, inbox = KnownNamespaces(), Inbox(clock, signers)
    http = http_destination(
        settings,
        clock,
        known,
        lambda name: namespaces.look_up([name]),
        own or OwnAddresses(),
        budget.callbacks,
        signers,
        inbox,
    )
    destination = callback_destination(
        settings, clock, http, nats, events, signers, callback_sealer, spans
    )
    cluster = cluster_of(settings, store, clock)
    meters = EngineMeters(labels, settings.metrics_endpoints, known)
    engine = Engine(
        store, store, destination, clock, options, cluster, known, store.security, meters
    )
    objectives = Objectives(
        store.lateness_ledger,
        clock,
        lambda: known.objectives,
        meters.objectives,
        labels,
        store.clock_believed_at,
    )
    namespaces = Namespaces(store, known, engine.own_new_shards)
    turns = Turns(clock)
    endpoints = Endpoints(store.endpoint_pauses, engine, clock, turns, endpoint_named)
    sealing_store = with_sealed_contents(store, callback_sealer, turns)
    creates = LimitedCreates(sealing_store, clock, engine, namespaces)
    webhook_secrets = WebhookSecrets(
        store.security, credential_watch, signers, namespaces, clock, seal=secret_sealer.sealed
    )
    timers = _Timers(sealing_store, clock, engine, destination, namespaces, creates, turns)
    bulk_runner = BulkRunner(
        *(store, store, clock, engine, namespaces, engine),
        forget_secrets=webhook_secrets.forget,
        turns=turns,
    )
    audit_log, share = AuditLog(store.security, clock), settings.audit_creates
    audited_commands = CommandAudit(audit_log, Sampling(share), clock) if share else None
    bus_router = None
    if bus is not None and events is not None:
        scheduling = timers.scheduling(settings)
        bus_router = BusRouter(bus, events, scheduling, clock, audited_commands)
    registry = Registry({"worker": str(workers.number)} if workers else None)
    requests, door, loop_lag = RequestMetrics(clock.monotonic), api_door(budget), LoopLag(clock)
    scrapes = Scrapes(registry, workers)
    registry.add(process_recorders(settings, clock, requests, door, audit_log, loop_lag))
    registry.add(store_watch.recorders())
    registry.add(timer_metrics(engine, http, bus_router, nats, objectives))
    report = partial(report_of, engine, store)
    searching = Searching(store.searches, callback_sealer, clock, turns)
    services = timers.services(
        settings,
        bulk_runner,
        keys,
        sessions,
        webhook_secrets,
        audit_log,
        objectives,
        report,
        endpoints,
        searching,
    )
    reporting = Reporting(
        settings, engine, store, clock, store_watch.census, objectives, bus_router, nats
    )
    health = partial(health_of, engine, store, http, bus_router, nats)

    app = create_app(
        services=services,
        store=store,
        clock=clock,
        health=health,
        api_key=settings.api_key,
        key_ring=key_ring,
        asyncapi=asyncapi_document(),
        metrics=Metrics(
            scrape=scrapes.scrape,
            requests=requests,
            public=settings.metrics_public,
            own_port=settings.metrics_port is not None,
        ),
        audited_creates=Sampling(share) if share else None,
        tracer=spans,
        problems=reporting.reports.problems,
        rules=ApiRules(
            max_body_bytes=settings.max_body_bytes,
            max_bodies_bytes=settings.max_bodies_bytes,
            callback_timeout_ms=callback_timeout_ms(settings),
        ),
    )
    web = WebUi(
        WebParts(
            services=services,
            authentication=app.authentication,
            auditing=app.auditing,
            lifecycle=app.lifecycle,
            clock=clock,
            worked=thread_seconds,
            reports=reporting.reports,
            trials=timers.trials(settings),
            inbox=inbox,
            max_body_bytes=settings.max_body_bytes,
            callback_timeout_ms=callback_timeout_ms(settings),
        )
    )
    app.add_web(web)
    return Duetime(
        settings,
        store=store,
        nats=nats,
        destination=destination,
        engine=engine,
        namespaces=namespaces,
        namespace_refresher=NamespaceRefresher(namespaces, clock),
        credential_watch=credential_watch,
        pause_watch=PauseWatch(endpoints, clock),
        webhook_secrets=webhook_secrets,
        key_uses=KeyUses(store.security, key_ring, clock),
        sessions=sessions,
        store_watch=store_watch,
        bulk_runner=bulk_runner,
        bus_router=bus_router,
        audit_log=audit_log,
        objectives=objectives,
        reporting=reporting,
        loop_lag=loop_lag,
        scrapes=scrapes,
        door=door,
        spans=spans,
        app=app,
        web=web,
    )


class _Store(TimerStore, BulkStore, Protocol):
    """The ports of the store that services need."""


class _Timers(NamedTuple):
    """The parts that the services of all front doors share."""

    store: _Store
    clock: SystemClock
    engine: Engine
    destination: Destination
    namespaces: Namespaces
    creates: LimitedCreates
    turns: Turns

    def services(
        self,
        settings: Settings,
        bulk_runner: BulkRunner,
        keys: Keys,
        sessions: Sessions,
        webhook_secrets: WebhookSecrets,
        audit_log: AuditLog,
        objectives: Objectives,
        report: Report,
        endpoints: Endpoints,
        searching: Searching,
    ) -> Services:
        platform = _timer_rules(settings)
        v1 = _v1_rules(settings)
        past_is_due = replace(v1, past_is_due=True)
        v1_timers = self._service(v1)
        redriving = Redriving(self.store, self.clock, self.engine, self.namespaces)
        return Services(
            platform=self._service(platform),
            v1=v1_timers,
            imports=self._service(past_is_due),
            restoring=Restoring(*self[:5], past_is_due, creates=self.creates, turns=self.turns),
            redriving=redriving,
            explaining=Explaining(v1_timers, self.clock, report),
            searching=searching,
            operations=BulkOperations(
                *(self.store, self.store, self.clock, self.namespaces, self.engine),
                bulk_runner.wake,
                turns=self.turns,
            ),
            chosen=ChosenTimers(
                *(self.store, self.clock, self.engine, self.namespaces), v1_timers, redriving
            ),
            namespaces=self.namespaces,
            webhook_secrets=webhook_secrets,
            audit_log=audit_log,
            keys=keys,
            sessions=sessions,
            objectives=objectives,
            endpoints=endpoints,
        )

    def trials(self, settings: Settings) -> TrialCreates:
        rules = _v1_rules(settings)
        return TrialCreates(self.store, self.clock, self.destination, self.namespaces, rules)

    def scheduling(self, settings: Settings) -> Scheduling:
        rules = replace(_timer_rules(settings), min_delay_ms=0, past_is_due=True)
        return Scheduling(*self[:5], rules, creates=self.creates.batcher, turns=self.turns)

    def _service(self, rules: TimerRules) -> TimerService:
        return TimerService(*self[:5], rules, creates=self.creates, turns=self.turns)


def _timer_rules(settings: Settings) -> TimerRules:
    return TimerRules(
        min_delay_ms=round(settings.min_delay_seconds * 1_000),
        callback_timeout_ms=callback_timeout_ms(settings),
        max_payload_bytes=settings.max_payload_bytes,
    )


def _v1_rules(settings: Settings) -> TimerRules:
    return replace(_timer_rules(settings), min_delay_ms=0, default_retries=True)
