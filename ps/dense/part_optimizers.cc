#include "ps/dense/part_optimizers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/optimizer/assigned/optimizer_of.h"

namespace parasol {
namespace {

// The chief does not give such a job to ps.
absl::Status CheckWorksOnParts(const wire::PartSpec& part,
                               const Optimizer& optimizer) {
  if (!optimizer.needs_whole_variable()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", part.variable(),
                   "\": its optimizer needs whole variables, and a ps has "
                   "parts of them; choose another one"));
}

}  // namespace

PartOptimizers::PartOptimizers(std::unique_ptr<const Optimizer> of_job)
    : of_job_(std::move(of_job)) {}

absl::StatusOr<PartOptimizers> PartOptimizers::Create(
    const job::Optimizer& of_job, const PartLayout& layout) {
  ASSIGN_OR_RETURN(std::unique_ptr<const Optimizer> optimizer,
                   MakeVariableOptimizer(of_job));
  PartOptimizers optimizers(std::move(optimizer));
  for (const wire::PartSpec& part : layout.parts()) {
    if (part.has_optimizer() || part.has_learning_rate_multiplier()) {
      ASSIGN_OR_RETURN(optimizers.own_[part.id()],
                       MakeVariableOptimizer(
                           part.has_optimizer() ? part.optimizer() : of_job,
                           part.has_learning_rate_multiplier()
                               ? part.learning_rate_multiplier()
                               : 1),
                       _ << "\"" << part.variable() << "\"");
    }
    const Optimizer& of_part = optimizers.of(part.id());
    RETURN_IF_ERROR(of_part.CheckCode())
        << (part.has_optimizer() ? part.variable() + ": optimizer"
                                 : "optimizer");
    RETURN_IF_ERROR(CheckWorksOnParts(part, of_part));
  }
  return optimizers;
}

const Optimizer& PartOptimizers::of(size_t part) const {
  const auto own = own_.find(part);
  return own == own_.end() ? *of_job_ : *own->second;
}

absl::StatusOr<uint64_t> PartOptimizers::CountBytes(const PartLayout& layout,
                                                    uint64_t limit) const {
  uint64_t bytes = 0;
  for (const wire::PartSpec& part : layout.parts()) {
    const uint64_t element_bytes =
        sizeof(float) * (1 + of(part.id()).slot_names().size());
    const uint64_t elements = part.elements();
    if (elements > (limit - bytes) / element_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "with the ", elements, " elements of \"", part.variable(),
          "\" and their slots the shard has "
          "more than ",
          limit, " bytes"));
    }
    bytes += elements * element_bytes;
  }
  return bytes;
}

}  // namespace parasol
