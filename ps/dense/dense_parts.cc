#include "ps/dense/dense_parts.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/rpc/protocol_limits.h"
#include "ml/compression/half.h"
#include "ps/operation/operation.h"
#include "ps/step/non_finite.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

// 64 MiB of arrays that pulls, snapshots and steps have given back.
constexpr size_t kMaxIdleArrays = 256;

// Checks that there is one payload for each range, and either no `kept` or one
// for each range.
absl::Status CheckCounts(const wire::Push& push, size_t payloads) {
  const size_t ranges = push.range_size(), kept = push.kept_size();
  if (payloads == ranges && (kept == 0 || kept == ranges)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("push of ", ranges, " ranges with ", payloads,
                   " payloads and ", kept, " kept counts"));
}

PayloadRef ReferTo(ArrayRef value) {
  auto owner = std::make_shared<ArrayRef>(std::move(value));
  const void* data = owner->data();
  const size_t bytes = owner->size() * sizeof(float);
  return {.data = data, .size = bytes, .owner = std::move(owner)};
}

PayloadRef EncodedCopy(const ArrayRef& value, job::Encoding encoding) {
  const size_t bytes = EncodedBytes(encoding, value.size());
  auto copy = std::make_shared_for_overwrite<std::byte[]>(bytes);
  Encode(encoding, value.span(), copy.get());
  const void* data = copy.get();
  return {.data = data, .size = bytes, .owner = std::move(copy)};
}

uint64_t ElementsOf(const DenseParts::Ranges& ranges) {
  uint64_t elements = 0;
  for (const PartLayout::ChunkRange& range : ranges) elements += range.elements;
  return elements;
}

uint64_t SlotBytesOf(const PartLayout& layout,
                     const PartOptimizers& optimizers) {
  uint64_t bytes = 0;
  for (const wire::PartSpec& part : layout.parts()) {
    bytes += part.elements() * sizeof(float) *
             optimizers.of(part.id()).slot_names().size();
  }
  return bytes;
}

}  // namespace

DenseParts::DenseParts(PartLayout layout, PartOptimizers optimizers,
                       const TrainingRules& rules)
    : layout_(std::move(layout)),
      optimizers_(std::move(optimizers)),
      slot_bytes_(SlotBytesOf(layout_, optimizers_)),
      rules_(rules),
      pool_(ArrayPool::Create(kChunkElements, kMaxIdleArrays)) {}

absl::StatusOr<std::unique_ptr<DenseParts>> DenseParts::Create(
    PartLayout layout, PartOptimizers optimizers, const TrainingRules& rules,
    Fill fill) {
  std::unique_ptr<DenseParts> table(
      new DenseParts(std::move(layout), std::move(optimizers), rules));
  for (const PartLayout::Chunk& place : table->layout_.chunks()) {
    RETURN_IF_ERROR(table->AddChunk(place, fill));
  }
  return table;
}

absl::Status DenseParts::AddChunk(const PartLayout::Chunk& place, Fill fill) {
  const wire::PartSpec& part = layout_.parts()[place.part];
  const int arrays = 1 + optimizers_.of(place.part).slot_names().size();
  ChunkContents contents;
  for (int array = kValueArray; array < arrays; ++array) {
    ArrayRef memory = pool_->TryAllocate(place.elements);
    if (!memory) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no memory for \"", part.variable(), "\" at element ",
                       place.first_element));
    }
    ASSIGN_OR_RETURN(const int64_t updates,
                     fill(part, array, place.first_element, memory.span()));
    if (array == kValueArray) {
      contents.updates = updates;
      contents.value = std::move(memory);
    } else {
      contents.slots.push_back(std::move(memory));
    }
  }
  chunks_.push_back(std::make_unique<Chunk>(std::move(contents), rules_.origin,
                                            part.frozen()));
  return absl::OkStatus();
}

absl::StatusOr<DenseParts::Gradients> DenseParts::Parse(
    const wire::Push& push, absl::Span<const PayloadView> payloads) const {
  Gradients gradients;
  ASSIGN_OR_RETURN(gradients.ranges, layout_.Resolve(push.range()));
  RETURN_IF_ERROR(CheckCounts(push, payloads.size()));
  RETURN_IF_ERROR(CheckNotFrozen(gradients.ranges));
  if (push.with_values()) {
    RETURN_IF_ERROR(CheckPullSize(ElementsOf(gradients.ranges)));
  }
  ReceivedGradient::Form form;
  ASSIGN_OR_RETURN(form.encoding, EncodingOf(push.encoding()));
  gradients.of_ranges.reserve(payloads.size());
  for (size_t i = 0; i < payloads.size(); ++i) {
    if (push.kept_size() > 0) form.kept = push.kept(i);
    const PartLayout::ChunkRange& range = gradients.ranges[i];
    ASSIGN_OR_RETURN(
        ReceivedGradient gradient,
        ReceivedGradient::Create(payloads[i], range.elements, form),
        _ << "payload " << i);
    if (rules_.non_finite == NonFinite::kReject) {
      RETURN_IF_ERROR(CheckFinite(gradient, range));
    }
    gradients.of_ranges.push_back(std::move(gradient));
  }
  return gradients;
}

absl::Status DenseParts::CheckNotFrozen(const Ranges& ranges) const {
  for (const PartLayout::ChunkRange& range : ranges) {
    if (range.first == range.last || !chunks_[range.first]->is_frozen()) {
      continue;
    }
    const size_t part = layout_.chunks()[range.first].part;
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient of \"", layout_.parts()[part].variable(),
                     "\", which is frozen"));
  }
  return absl::OkStatus();
}

absl::Status DenseParts::CheckFinite(
    const ReceivedGradient& gradient,
    const PartLayout::ChunkRange& range) const {
  const std::optional<size_t> element = gradient.FirstNonFinite();
  if (!element.has_value()) return absl::OkStatus();
  const PartLayout::Chunk& place = layout_.chunks()[range.first];
  return NonFiniteError(
      absl::StrCat("\"", layout_.parts()[place.part].variable(), "\""),
      absl::StrCat(place.first_element + *element));
}

ChunkUpdater DenseParts::UpdaterOf(size_t chunk) const {
  return {.optimizer = optimizers_.of(layout_.chunks()[chunk].part),
          .pool = *pool_,
          .replicas_to_aggregate = rules_.replicas_to_aggregate,
          .memory = rules_.memory};
}

absl::Status DenseParts::UseOptimizers(PartOptimizers optimizers) {
  for (const wire::PartSpec& part : layout_.parts()) {
    if (optimizers.of(part.id()).slot_names() ==
        optimizers_.of(part.id()).slot_names()) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", part.variable(), "\" would have other slots than it has"));
  }
  optimizers_ = std::move(optimizers);
  return absl::OkStatus();
}

UpdateBounds DenseParts::Apply(const Gradients& gradients) {
  UpdateBounds updates;
  for (size_t i = 0; i < gradients.ranges.size(); ++i) {
    GradientReader gradient(gradients.of_ranges[i]);
    const PartLayout::ChunkRange& range = gradients.ranges[i];
    // A range is of one part.
    const ChunkUpdater updater = UpdaterOf(range.first);
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      updates.Include(chunks_[chunk]->Apply(updater, gradient));
    }
  }
  return updates;
}

absl::Status DenseParts::CheckNotAhead(const Ranges& ranges,
                                       int64_t step) const {
  for (const PartLayout::ChunkRange& range : ranges) {
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      RETURN_IF_ERROR(chunks_[chunk]->CheckNotAhead(step))
          << "\"" << layout_.parts()[layout_.chunks()[chunk].part].variable()
          << "\"";
    }
  }
  return absl::OkStatus();
}

StepEntries DenseParts::Contribute(const StepPush& push,
                                   const Gradients& gradients,
                                   const std::shared_ptr<Latch>& latch,
                                   Released& released) {
  StepEntries entries;
  for (size_t i = 0; i < gradients.ranges.size(); ++i) {
    GradientReader gradient(gradients.of_ranges[i]);
    const PartLayout::ChunkRange& range = gradients.ranges[i];
    // A range is of one part.
    const ChunkUpdater updater = UpdaterOf(range.first);
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      entries.Include(
          chunks_[chunk]->Contribute(updater, push, gradient, latch, released));
    }
  }
  return entries;
}

void DenseParts::NotifyAt(const Ranges& ranges, int64_t updates,
                          const std::shared_ptr<Latch>& latch,
                          Released& released) {
  for (const PartLayout::ChunkRange& range : ranges) {
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      chunks_[chunk]->NotifyAt(updates, latch, released);
    }
  }
}

void DenseParts::HoldNow(UpdateBounds& updates) {
  for (const std::unique_ptr<Chunk>& chunk : chunks_) {
    if (!chunk->is_frozen()) updates.Include(chunk->HoldNow());
  }
}

void DenseParts::Hold(int64_t updates, Released& released) {
  for (size_t i = 0; i < chunks_.size(); ++i) {
    chunks_[i]->Hold(UpdaterOf(i), updates, released);
  }
}

bool DenseParts::GoOnAt(int64_t updates, Released& released) {
  bool has_jumped = false;
  for (const std::unique_ptr<Chunk>& chunk : chunks_) {
    has_jumped |= chunk->GoOnAt(updates, released);
  }
  return has_jumped;
}

void DenseParts::Abandon(const absl::Status& status, Released& released) {
  for (const std::unique_ptr<Chunk>& chunk : chunks_) {
    chunk->Abandon(status, released);
  }
}

absl::StatusOr<DenseParts::Ranges> DenseParts::Resolve(
    const wire::Pull& pull) const {
  ASSIGN_OR_RETURN(Ranges ranges, layout_.Resolve(pull.range()));
  RETURN_IF_ERROR(CheckPullSize(ElementsOf(ranges)));
  return ranges;
}

size_t DenseParts::Chunks(const Ranges& ranges) {
  size_t chunks = 0;
  for (const PartLayout::ChunkRange& range : ranges) {
    chunks += range.last - range.first;
  }
  return chunks;
}

UpdateBounds DenseParts::Updates(const Ranges& ranges) const {
  UpdateBounds updates;
  for (const PartLayout::ChunkRange& range : ranges) {
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      updates.Include(chunks_[chunk]->updates());
    }
  }
  return updates;
}

DenseParts::Pulled DenseParts::Pull(const Ranges& ranges,
                                    job::Encoding encoding,
                                    int64_t min_updates) const {
  Pulled pulled;
  pulled.payloads.reserve(Chunks(ranges));
  for (const PartLayout::ChunkRange& range : ranges) {
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      ChunkContents contents = chunks_[chunk]->Value(min_updates);
      pulled.updates.Include(contents.updates);
      pulled.payloads.push_back(encoding == job::FLOAT32
                                    ? ReferTo(std::move(contents.value))
                                    : EncodedCopy(contents.value, encoding));
    }
  }
  return pulled;
}

}  // namespace parasol
