"""Sends spans to an OpenTelemetry collector as the journal grows.

    journal ──scan──> Spans ──links an end to what began──> Exporter ──OTLP/HTTP──> collector
                                                               └──keeps the position, once they are taken

The journal is the queue: what a collector that was away missed is read again, and nothing more is held in memory. One
process sends at a time, the one that holds the lease of `telemetry`. If it dies between sending and keeping, spans are
sent twice, with the same ids.
"""
