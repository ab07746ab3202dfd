#include "cluster/check/idle_settings.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace parasol {
namespace {

// Returns true if a schedule may give a rate of 0 another value.
bool MayRaise(const job::LearningRateSchedule& schedule) {
  return schedule.has_piecewise_constant_decay() ||
         schedule.polynomial_decay().end_learning_rate() > 0 ||
         schedule.warmup().start() > 0;
}

void WarnOfRate(const std::string& path, const job::Optimizer& optimizer,
                std::vector<std::string>& warnings) {
  using ::google::protobuf::FieldDescriptor;
  if (optimizer.has_learning_rate_by_global_batch() ||
      MayRaise(optimizer.learning_rate_schedule())) {
    return;
  }
  const FieldDescriptor* const kind =
      job::Optimizer::descriptor()->FindFieldByNumber(optimizer.kind_case());
  if (kind == nullptr) return;
  const google::protobuf::Message& rule =
      optimizer.GetReflection()->GetMessage(optimizer, kind);
  const FieldDescriptor* const field =
      rule.GetDescriptor()->FindFieldByName("learning_rate");
  if (field == nullptr || !rule.GetReflection()->HasField(rule, field)) return;
  const double rate = rule.GetReflection()->GetDouble(rule, field);
  if (static_cast<float>(rate) != 0) return;
  warnings.push_back(absl::StrCat(
      path, ".", kind->name(), ".learning_rate: is ", rate,
      rate == 0 ? "" : ", 0 as float32", ": nothing that uses it learns"));
}

}  // namespace

std::vector<std::string> ZeroRateWarnings(const job::Job& job) {
  std::vector<std::string> warnings;
  // Parasol has moved what the file calls so.
  const job::LocalSteps& local = job.parameter_server().local_steps();
  if (local.has_inner()) {
    WarnOfRate("optimizer", local.inner(), warnings);
    WarnOfRate("parameter_server.local_steps.outer", job.optimizer(), warnings);
  } else {
    WarnOfRate("optimizer", job.optimizer(), warnings);
  }
  for (int i = 0; i < job.model().layer_size(); ++i) {
    WarnOfRate(absl::StrCat("model.layer[", i, "].optimizer"),
               job.model().layer(i).optimizer(), warnings);
  }
  for (int i = 0; i < job.model().sparse_table_size(); ++i) {
    WarnOfRate(absl::StrCat("model.sparse_table[", i, "].optimizer"),
               job.model().sparse_table(i).optimizer(), warnings);
  }
  return warnings;
}

std::vector<std::string> AdmissionWarnings(const job::Model& model,
                                           const std::vector<int64_t>& most,
                                           int64_t epochs) {
  std::vector<std::string> warnings;
  const size_t tables =
      std::min<size_t>(most.size(), model.sparse_table_size());
  for (size_t i = 0; i < tables; ++i) {
    const job::SparseTable& table = model.sparse_table(static_cast<int>(i));
    const int64_t wanted = table.admission().min_count();
    // Rounded up: wanted > most * epochs, which may overflow.
    if (!table.has_admission() || most[i] <= 0 || epochs <= 0 ||
        (wanted - 1) / epochs < most[i]) {
      continue;
    }
    warnings.push_back(absl::StrCat(
        "model.sparse_table[", i, "].admission.min_count: is ", wanted,
        ", but no id of table \"", table.name(), "\" comes more than ",
        most[i] * epochs, " times in ", epochs,
        epochs == 1 ? " epoch" : " epochs", ": of these data it gets no rows"));
  }
  return warnings;
}

}  // namespace parasol
