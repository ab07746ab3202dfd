#include "serving/serving_metrics.h"

namespace parasol {
namespace {

constexpr char kAnswers[] = "parasol_serve_requests_total";
constexpr char kAnswersHelp[] = "Requests for predictions, by their end.";

}  // namespace

ServingMetrics::ServingMetrics(MetricsRegistry& registry)
    : version(registry.AddGauge(
          "parasol_serve_model_version",
          "Step of the checkpoint that is served; -1 before the first.")),
      written(registry.AddGauge(
          "parasol_serve_model_written_seconds",
          "Unix time at which the served checkpoint was begun: the age of what "
          "is served is the time since.")),
      queued_examples(registry.AddGauge("parasol_serve_queued_examples",
                                        "Examples that wait for the model.")),
      loads(registry.AddCounter("parasol_serve_loads_total",
                                "Checkpoints that were loaded.")),
      shared_loads(registry.AddCounter("parasol_serve_shared_loads_total",
                                       "Checkpoints of whose tables only what "
                                       "has changed was read; the rest "
                                       "is shared with the version before.")),
      refused_loads(registry.AddCounter(
          "parasol_serve_refused_loads_total",
          "Checkpoints that can't be served: damaged, or of a job that "
          "can't.")),
      examples(registry.AddCounter("parasol_serve_examples_total",
                                   "Examples that went through the model.")),
      batches(registry.AddCounter("parasol_serve_batches_total",
                                  "Passes of the model.")),
      overloaded(registry.AddCounter(
          "parasol_serve_overloaded_total",
          "Requests that were refused because too many examples waited.")),
      expired(registry.AddCounter(
          "parasol_serve_expired_total",
          "Requests that waited for the model beyond their deadline.")),
      answers(registry.AddCounter(kAnswers, kAnswersHelp, {{"result", "ok"}})),
      client_errors(registry.AddCounter(kAnswers, kAnswersHelp,
                                        {{"result", "client_error"}})),
      server_errors(registry.AddCounter(kAnswers, kAnswersHelp,
                                        {{"result", "server_error"}})),
      lag(registry.AddHistogram("parasol_serve_lag_seconds",
                                "Time from the begin of a checkpoint until it "
                                "is served, of the checkpoints that took "
                                "another one's place.",
                                LatencyBounds())),
      latency(registry.AddHistogram(
          "parasol_serve_latency_seconds",
          "Time from a whole request for predictions to its answer.",
          LatencyBounds())) {
  version.Set(-1);
}

}  // namespace parasol
