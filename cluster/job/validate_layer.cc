#include "cluster/job/validate_layer.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/did_you_mean.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/validate_optimizer.h"
#include "ml/initializer/initializer_fields.h"
#include "ml/layer/kinds/layer_kinds.h"
#include "ml/layer/variable_spec.h"
#include "ml/optimizer/optimizer.h"

namespace parasol {
namespace {

constexpr int64_t kMaxTables = 1024;
constexpr int64_t kMaxTableWidth = 65536;

// Counts are 32 bits wide.
constexpr int64_t kMaxAdmissionCount = int64_t{1} << 31;
// Ages of counts are kept in 31 bits.
constexpr int64_t kMaxIdleSteps = int64_t{1} << 30;
// Each ps keeps rows in 128 stripes, each of which has its share.
constexpr int64_t kMinTableRows = 1024;
constexpr int64_t kMaxTableRows = int64_t{1} << 50;
// Less leaves no room for rows beside what is on its way to the disk.
constexpr int64_t kMinTierBytes = 64 << 20;
constexpr int64_t kMaxTierBytes = int64_t{1} << 50;

absl::Status ValidateTableName(const std::string& path,
                               const std::string& name) {
  if (name.empty()) return Missing(path);
  const auto is_allowed = [](char c) {
    return absl::ascii_isalnum(c) || absl::StrContains("_-./", c);
  };
  if (name.size() <= kMaxNameBytes &&
      std::all_of(name.begin(), name.end(), is_allowed)) {
    return absl::OkStatus();
  }
  return Fault(path, absl::StrCat("\"", ShownText(name, 100), "\" is not 1 to ",
                                  kMaxNameBytes,
                                  " letters, digits, '_', '-', '.', '/'"));
}

absl::Status ValidateTableInitializer(const std::string& path,
                                      const job::Initializer& initializer) {
  RETURN_IF_ERROR(CheckInitializer(initializer)) << path;
  if (initializer.has_glorot_uniform() || initializer.has_he_normal()) {
    return Fault(path, "a table has no shape to scale it by");
  }
  if (initializer.has_orthogonal() || initializer.has_unit_forget()) {
    return Fault(path, "it is for a variable, not for a table's rows");
  }
  return absl::OkStatus();
}

// The rules by which ids get rows, and lose them.
Faults ValidateBounds(const std::string& path, const job::SparseTable& table) {
  Faults faults;
  const std::string admission = absl::StrCat(path, ".admission");
  const std::string eviction = absl::StrCat(path, ".eviction");
  if (table.has_admission()) {
    const std::string field = absl::StrCat(admission, ".min_count");
    // With 1 each id gets its row at once, as without an admission.
    faults.Add(table.admission().has_min_count()
                   ? RequireInRange(field, table.admission().min_count(), 2,
                                    kMaxAdmissionCount)
                   : Missing(field));
  }
  if (table.eviction().has_idle_steps()) {
    faults.Add(RequireInRange(absl::StrCat(eviction, ".idle_steps"),
                              table.eviction().idle_steps(), 1, kMaxIdleSteps));
  }
  if (table.eviction().has_max_rows()) {
    faults.Add(RequireInRange(absl::StrCat(eviction, ".max_rows"),
                              table.eviction().max_rows(), kMinTableRows,
                              kMaxTableRows));
  }
  if (table.has_eviction() && !table.eviction().has_idle_steps() &&
      !table.eviction().has_max_rows()) {
    faults.Add(Fault(eviction,
                     "says nothing: set idle_steps or max_rows, or leave "
                     "eviction out"));
  }
  if (table.trainable()) return faults;
  const std::string why =
      "the table is not trainable: no push makes or touches a row; leave this "
      "or trainable: false out";
  if (table.has_admission()) faults.Add(Fault(admission, why));
  if (table.has_eviction()) faults.Add(Fault(eviction, why));
  return faults;
}

Faults ValidateSparseTable(const std::string& path,
                           const job::SparseTable& table) {
  Faults faults = ValidateBounds(path, table);
  if (table.has_tier()) {
    const std::string field = absl::StrCat(path, ".tier.memory_bytes");
    faults.Add(table.tier().has_memory_bytes()
                   ? RequireInRange(field, table.tier().memory_bytes(),
                                    kMinTierBytes, kMaxTierBytes)
                   : Missing(field));
  }
  faults.Add(ValidateTableName(absl::StrCat(path, ".name"), table.name()));
  const std::string width = absl::StrCat(path, ".width");
  faults.Add(table.has_width()
                 ? RequireInRange(width, table.width(), 1, kMaxTableWidth)
                 : Missing(width));
  faults.Add(ValidateTableInitializer(absl::StrCat(path, ".initializer"),
                                      table.initializer()));
  faults.Add(RequirePositive(absl::StrCat(path, ".learning_rate_multiplier"),
                             table.learning_rate_multiplier()));
  if (!table.has_optimizer()) return faults;
  if (table.optimizer().has_ema()) {
    faults.Add(Fault(absl::StrCat(path, ".optimizer.ema"),
                     "rows have no average: only optimizer.ema, of the job's "
                     "variables, is there"));
  }
  const Faults of_optimizer = ValidateRowOptimizer(table.optimizer());
  for (const absl::Status& fault : of_optimizer.all()) faults.Add(path, fault);
  return faults;
}

// Returns true if a push changes rows that it does not have. An optimizer that
// is not valid is another fault.
bool ChangesOtherRows(const job::Optimizer& spec) {
  const auto optimizer = MakeOptimizer(spec);
  return optimizer.ok() &&
         (*optimizer)->other_rows() != Optimizer::OtherRows::kUntouched;
}

// A table that is not trained has no optimizer.
absl::Status RequireRowsOptimizer(const std::string& path,
                                  const job::SparseTable& table,
                                  const job::Optimizer& of_job) {
  const job::Optimizer& optimizer =
      table.has_optimizer() ? table.optimizer() : of_job;
  if (table.trainable() && optimizer.sgd().delay() > 1) {
    return Fault(absl::StrCat(path, ".optimizer"),
                 "an sgd with a delay gathers gradients of rows that the "
                 "next updates may not have; give the table another one, such "
                 "as adagrad {}");
  }
  if (table.trainable() && table.has_tier() && ChangesOtherRows(optimizer)) {
    return Fault(absl::StrCat(path, ".tier"),
                 "with its optimizer each push changes all rows, also those on "
                 "the disk; give the table another one, such as lazy_adam {} "
                 "or adagrad {}, or leave the tier out");
  }
  if (!table.trainable() || !optimizer.has_lamb()) return absl::OkStatus();
  return Fault(absl::StrCat(path, ".optimizer"),
               "a step of LAMB needs the norms of all rows, of which it reads "
               "some; give the table another one, such as lazy_adam {}");
}

// Checks that the table that a layer reads is one of the model's. A kind checks
// whether its layer needs one.
absl::Status ValidateTable(const std::string& path, const std::string& name,
                           const job::Model& model) {
  if (name.empty()) return absl::OkStatus();
  std::vector<std::string> tables;
  for (const job::SparseTable& table : model.sparse_table()) {
    if (table.name() == name) return absl::OkStatus();
    tables.push_back(table.name());
  }
  return Fault(path, absl::StrCat("\"", ShownText(name, 100),
                                  "\" is the name of no model.sparse_table",
                                  DidYouMean(name, tables)));
}

}  // namespace

Faults ValidateLayer(int position, const job::Model& model) {
  Faults faults;
  const std::string path = absl::StrCat("model.layer[", position, "]");
  const job::Layer& layer = model.layer(position);
  const LayerKind* const kind = KindOf(layer);
  if (kind == nullptr) {
    faults.Add(Fault(path, "no kind is chosen: dense, conv2d, activation, …"));
    return faults;
  }
  if (layer.name().empty()) {
    faults.Add(Missing(absl::StrCat(path, ".name")));
  }
  const std::string of_kind = absl::StrCat(path, ".", KindNameOf(layer));
  if (kind->table != nullptr) {
    faults.Add(ValidateTable(absl::StrCat(of_kind, ".table"),
                             kind->table(layer), model));
  }
  if (kind->check != nullptr) faults.Add(kind->check(of_kind, layer));
  return faults;
}

Faults ValidateSparseTables(const job::Job& job, const Graph* graph) {
  const job::Model& model = job.model();
  Faults faults;
  faults.Add(RequireInRange("model.sparse_table", model.sparse_table_size(), 0,
                            kMaxTables));
  std::set<std::string> names;
  if (graph != nullptr) {
    for (const VariableSpec& variable : graph->variables) {
      names.insert(variable.name);
    }
  }
  for (int i = 0; i < model.sparse_table_size(); ++i) {
    const std::string path = absl::StrCat("model.sparse_table[", i, "]");
    const job::SparseTable& table = model.sparse_table(i);
    faults.Add(ValidateSparseTable(path, table));
    faults.Add(RequireRowsOptimizer(path, table, job.optimizer()));
    if (table.name().empty() || names.insert(table.name()).second) continue;
    faults.Add(Fault(absl::StrCat(path, ".name"),
                     absl::StrCat(table.name(), " appears twice")));
  }
  return faults;
}

}  // namespace parasol
