#include "cluster/job/validate_optimizer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/field_checks.h"
#include "cluster/job/global_batch_rate.h"
#include "cluster/job/strategy.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ml/optimizer/assigned/averaged.h"
#include "ml/optimizer/assigned/optimizer_of.h"
#include "ml/optimizer/clip.h"
#include "ml/optimizer/learning_rate.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// Clears the field of that path, "adam.beta_1"; returns false if there is none
// that is set.
bool ClearField(absl::string_view path, Message& spec) {
  Message* parent = &spec;
  const FieldDescriptor* field = nullptr;
  for (const absl::string_view name : absl::StrSplit(path, '.')) {
    if (field != nullptr) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return false;
      parent = parent->GetReflection()->MutableMessage(parent, field);
    }
    field = parent->GetDescriptor()->FindFieldByName(std::string(name));
    if (field == nullptr || field->is_repeated() ||
        !parent->GetReflection()->HasField(*parent, field)) {
      return false;
    }
  }
  parent->GetReflection()->ClearField(parent, field);
  return true;
}

// Every fault that `check`, which stops at the first, finds in `spec`: the
// field that a fault's message begins with gets its default before the next
// look.
template <typename Spec>
Faults AllFaults(absl::string_view path, Spec spec,
                 absl::FunctionRef<absl::Status(const Spec&)> check,
                 absl::FunctionRef<void(Spec&)> fill_defaults) {
  Faults faults;
  std::set<std::string> cleared;
  while (true) {
    const absl::Status fault = check(spec);
    if (fault.ok()) return faults;
    const absl::string_view message = fault.message();
    const std::string field(message.substr(0, message.find(' ')));
    if (!cleared.insert(field).second) return faults;
    faults.Add(path, fault);
    if (!ClearField(field, spec)) return faults;
    fill_defaults(spec);
  }
}

// A variable is found by its name: it must be of one layer.
absl::Status RequireOneLayer(const std::string& path, const job::Layer& layer,
                             const VariableSpec& variable,
                             const job::Job& job) {
  const job::Optimizer* const own =
      layer.has_optimizer() ? &layer.optimizer() : &job.optimizer();
  if (&OptimizerOfVariable(variable.name, job) == own) return absl::OkStatus();
  return Fault(absl::StrCat(path, ".name"),
               absl::StrCat("its variable ", variable.name,
                            " could be another layer's, too, and one of them "
                            "has an optimizer; choose another name"));
}

bool Clips(const job::Optimizer& optimizer) {
  return optimizer.has_clipvalue() || optimizer.has_clipnorm() ||
         optimizer.has_global_clipnorm();
}

// Returns the fault of a batch size that is not what Parasol has set.
absl::Status CheckLocalBatch(const job::Job& job) {
  const job::LocalSteps& local = job.parameter_server().local_steps();
  const std::string path = "parameter_server.local_steps.batch_size";
  if (!local.has_batch_size()) return absl::OkStatus();
  if (local.has_outer()) {
    return Fault(path, "Parasol sets it; set train.batch_size");
  }
  if (local.batch_size() >= 1 &&
      int64_t{local.batch_size()} * local.steps() == job.train().batch_size()) {
    return absl::OkStatus();
  }
  return Fault(
      path,
      absl::StrCat(local.batch_size(), " examples in each of ", local.steps(),
                   " steps are not the ", job.train().batch_size(),
                   " of train.batch_size; leave it out, and set "
                   "train.batch_size to the examples of a local step"));
}

// Returns the fault of a layer or table that local steps can't take.
absl::Status CheckModelOfLocalSteps(const job::Model& model) {
  const std::string path = "parameter_server.local_steps";
  if (model.sparse_table_size() > 0) {
    return Fault(
        path, absl::StrCat("the sparse table \"", model.sparse_table(0).name(),
                           "\" needs each step's gradients on the "
                           "ps; use embedding layers, or leave "
                           "local_steps out"));
  }
  for (const job::Layer& layer : model.layer()) {
    if (!layer.has_optimizer() && layer.learning_rate_multiplier() == 1) {
      continue;
    }
    return Fault(
        path, absl::StrCat("layer \"", layer.name(), "\" has ",
                           layer.has_optimizer() ? "an optimizer"
                                                 : "a learning_rate_multiplier",
                           " of its own; local steps have the "
                           "job's optimizer for all layers"));
  }
  return absl::OkStatus();
}

// Returns the faults of exchanges in fragments, or beside steps. `graph` is the
// model's; null: it has faults of its own.
Faults CheckFragments(const job::Job& job, const Graph* graph) {
  const std::string path = "parameter_server.local_steps";
  const job::LocalSteps& local = job.parameter_server().local_steps();
  Faults faults;
  const int fragments = local.has_fragments() ? local.fragments() : 1;
  faults.Add(RequireInRange(absl::StrCat(path, ".fragments"), fragments, 1,
                            std::max(1, local.steps())));
  if (!faults.empty()) return faults;
  const int share = local.steps() / fragments;
  if (local.overlap_steps() < 0 ||
      (local.overlap_steps() > 0 && local.overlap_steps() >= share)) {
    faults.Add(Fault(
        absl::StrCat(path, ".overlap_steps"),
        absl::StrCat(local.overlap_steps(), " of the ", share,
                     " local steps between two exchanges (steps / fragments); "
                     "set less than these")));
  }
  if (graph != nullptr && fragments > 1) {
    const auto changing = std::count_if(
        graph->variables.begin(), graph->variables.end(),
        [](const VariableSpec& variable) { return !variable.frozen; });
    if (changing < fragments) {
      faults.Add(Fault(absl::StrCat(path, ".fragments"),
                       absl::StrCat(fragments,
                                    " groups of whole variables, but the model "
                                    "has only ",
                                    changing, " that change")));
    }
  }
  if (!StreamsFragments(job)) return faults;
  if (job.parameter_server().has_bounded_staleness()) {
    faults.Add(Fault("parameter_server.bounded_staleness",
                     "is a bound for values that are pulled before each "
                     "exchange; with local_steps.fragments or overlap_steps "
                     "choose asynchronous or synchronous"));
  }
  return faults;
}

// Returns the faults of the optimizer by which differences are applied, and of
// the one of local steps, with the fields' names as the user has them.
Faults ValidateLocalOptimizers(const job::Job& job) {
  const std::string path = "parameter_server.local_steps.outer";
  const job::LocalSteps& local = job.parameter_server().local_steps();
  Faults faults;
  if (local.has_outer()) {
    faults.Add(Fault("parameter_server.local_steps.inner",
                     "Parasol sets it; set outer, and optimizer for the local "
                     "steps"));
    return faults;
  }
  if (!local.has_inner()) {
    faults.Add(Missing(path));
    return faults;
  }
  faults.Add(ValidateOptimizer(local.inner()));
  const Faults of_outer = ValidateOptimizer(job.optimizer());
  for (const absl::Status& fault : of_outer.all()) {
    faults.Add(absl::Status(
        fault.code(),
        absl::StrCat(path, absl::StripPrefix(fault.message(), "optimizer"))));
  }
  const std::pair<std::string, const job::Optimizer*> optimizers[] = {
      {"optimizer", &local.inner()}, {path, &job.optimizer()}};
  for (const auto& [where, spec] : optimizers) {
    if (!spec->has_learning_rate_by_global_batch()) continue;
    faults.Add(Fault(absl::StrCat(where, ".learning_rate_by_global_batch"),
                     "has no meaning with local steps; set learning_rate"));
  }
  if (Clips(job.optimizer())) {
    faults.Add(Fault(path,
                     "differences of local steps are not clipped; clip in "
                     "optimizer"));
  }
  if (local.inner().has_ema() || local.inner().has_reduce_on_plateau()) {
    faults.Add(Fault(
        local.inner().has_ema() ? "optimizer.ema"
                                : "optimizer.reduce_on_plateau",
        "local steps are a worker's own; set it in "
        "parameter_server.local_steps.outer, for the values that all have"));
  }
  return faults;
}

}  // namespace

Faults ValidateOptimizer(const job::Optimizer& optimizer) {
  Faults faults = ValidateRowOptimizer(optimizer);
  if (optimizer.has_rowwise_adagrad()) {
    faults.Add(Fault("optimizer.rowwise_adagrad",
                     "is for rows of tables alone; set it in "
                     "model.sparse_table.optimizer, and another one for "
                     "variables, such as adagrad {}"));
  }
  return faults;
}

Faults ValidateRowOptimizer(const job::Optimizer& optimizer) {
  Faults faults = AllFaults<job::LearningRateSchedule>(
      "optimizer.learning_rate_schedule", optimizer.learning_rate_schedule(),
      CheckLearningRateSchedule, [](job::LearningRateSchedule&) {});
  job::Optimizer rule = optimizer;
  rule.clear_learning_rate_schedule();  // checked already
  faults.Add(AllFaults<job::Optimizer>(
      "optimizer", std::move(rule),
      [](const job::Optimizer& spec) { return MakeOptimizer(spec).status(); },
      [](job::Optimizer& spec) { FillDefaults(spec); }));
  if (optimizer.has_ema()) faults.Add("optimizer", CheckEma(optimizer.ema()));
  faults.Add("optimizer", CheckClipping(optimizer));
  faults.Add("optimizer", CheckGlobalBatchRates(optimizer));
  return faults;
}

Faults ValidateLayerOptimizers(const job::Job& job, const Graph* graph) {
  Faults faults;
  for (int i = 0; i < job.model().layer_size(); ++i) {
    const std::string path = absl::StrCat("model.layer[", i, "]");
    const job::Layer& layer = job.model().layer(i);
    if (layer.has_optimizer()) {
      const Faults of_optimizer = ValidateOptimizer(layer.optimizer());
      for (const absl::Status& fault : of_optimizer.all()) {
        faults.Add(path, fault);
      }
    }
    if (graph == nullptr) continue;
    const GraphNode& node = graph->nodes[i];
    for (size_t v = 0; v < node.layer->variables().size(); ++v) {
      faults.Add(RequireOneLayer(
          path, layer, graph->variables[node.first_variable + v], job));
    }
  }
  return faults;
}

Faults ValidateLocalSteps(const job::Job& job, const Graph* graph) {
  Faults faults;
  if (!job.parameter_server().has_local_steps()) return faults;
  const std::string path = "parameter_server.local_steps.steps";
  const job::LocalSteps& local = job.parameter_server().local_steps();
  faults.Add(local.has_steps() ? RequireInRange(path, local.steps(), 1, kMaxInt)
                               : Missing(path));
  faults.Add(CheckLocalBatch(job));
  faults.Add(CheckModelOfLocalSteps(job.model()));
  faults.Add(CheckFragments(job, graph));
  faults.Add(ValidateLocalOptimizers(job));
  if (job.strategy().multi_worker_mirrored().communication() ==
      job::MultiWorkerMirrored::NCCL) {
    faults.Add(Fault("strategy.multi_worker_mirrored.communication",
                     "NCCL adds gradients on the devices, and the differences "
                     "of local steps are in host memory; choose AUTO"));
  }
  return faults;
}

}  // namespace parasol
