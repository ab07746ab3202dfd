#include "tool/exchange/tensor_names.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace parasol {

std::string KerasNameOf(const job::Optimizer& optimizer) {
  switch (optimizer.kind_case()) {
    case job::Optimizer::kSgd:
      return "SGD";
    case job::Optimizer::kAdagrad:
      return "Adagrad";
    case job::Optimizer::kAdam:
      return "Adam";
    case job::Optimizer::kLazyAdam:
      return "LazyAdam";
    case job::Optimizer::kRmsprop:
      return "RMSprop";
    case job::Optimizer::kAdadelta:
      return "Adadelta";
    case job::Optimizer::kAdamax:
      return "Adamax";
    case job::Optimizer::kNadam:
      return "Nadam";
    case job::Optimizer::kFtrl:
      return "Ftrl";
    case job::Optimizer::kAdamw:
      return "AdamW";
    case job::Optimizer::kLion:
      return "Lion";
    case job::Optimizer::kLamb:
      return "LAMB";
    case job::Optimizer::kRowwiseAdagrad:
      return "RowwiseAdagrad";
    case job::Optimizer::kCustom:
    case job::Optimizer::KIND_NOT_SET:
      break;
  }
  return "optimizer";
}

std::string PlainOptimizer(absl::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (absl::ascii_isalpha(c)) plain += absl::ascii_tolower(c);
  }
  return plain;
}

const job::Optimizer& OptimizerOf(const job::SparseTable& table,
                                  const job::Job& job) {
  return table.has_optimizer() ? table.optimizer() : job.optimizer();
}

const job::Optimizer& OptimizerOfTable(absl::string_view table,
                                       const job::Job& job) {
  for (const job::SparseTable& of_job : job.model().sparse_table()) {
    if (of_job.name() == table) return OptimizerOf(of_job, job);
  }
  return job.optimizer();
}

std::string IterationsName(const job::Optimizer& optimizer) {
  return absl::StrCat(KerasNameOf(optimizer), "/iter");
}

std::string SlotName(const job::Optimizer& optimizer,
                     absl::string_view variable, absl::string_view slot) {
  return absl::StrCat(KerasNameOf(optimizer), "/", variable, "/", slot);
}

std::string IdsName(absl::string_view table) {
  return absl::StrCat(table, "/ids");
}

std::string RowsName(absl::string_view table) {
  return absl::StrCat(table, "/rows");
}

}  // namespace parasol
