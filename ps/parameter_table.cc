#include "ps/parameter_table.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cluster/rpc/chunk.h"
#include "ps/float_runs.h"
#include "storage/shard_entry.h"

namespace parasol {
namespace {

// 64 MiB of arrays that pulls and snapshots have given back.
constexpr size_t kMaxIdleArrays = 256;

// A larger message would end the stream (cluster/rpc).
constexpr size_t kMaxPullBytes = 48 << 20;

absl::Status CheckPullSize(const std::vector<TableLayout::ChunkRange>& ranges) {
  size_t bytes = 0;
  for (const TableLayout::ChunkRange& range : ranges) {
    bytes += range.elements * sizeof(float);
  }
  if (bytes <= kMaxPullBytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("pull of ", bytes, " bytes: more than ", kMaxPullBytes));
}

// What this table cannot do.
absl::Status CheckSupported(const wire::Push& push) {
  if (push.encoding() == wire::FLOAT32 && push.kept().empty() &&
      !push.has_sync()) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(
      "a push that is synchronous, sparsified or not float32");
}

absl::Status CheckSupported(const wire::Pull& pull) {
  if (pull.encoding() == wire::FLOAT32 && pull.min_updates() == 0) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError("a pull that waits or is not float32");
}

absl::Status CheckSizes(const std::vector<TableLayout::ChunkRange>& ranges,
                        absl::Span<const PayloadView> gradients) {
  if (gradients.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("push of ", ranges.size(), " ranges with ",
                     gradients.size(), " payloads"));
  }
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (gradients[i].size() != ranges[i].elements * sizeof(float)) {
      return absl::InvalidArgumentError(
          absl::StrCat("payload ", i, " has ", gradients[i].size(),
                       " bytes for ", ranges[i].elements, " float32"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ParameterTable::ParameterTable(TableLayout layout,
                               std::unique_ptr<const Optimizer> optimizer)
    : layout_(std::move(layout)),
      optimizer_(std::move(optimizer)),
      pool_(ArrayPool::Create(kChunkElements, kMaxIdleArrays)) {}

absl::StatusOr<std::unique_ptr<ParameterTable>> ParameterTable::Create(
    TableLayout layout, std::unique_ptr<const Optimizer> optimizer,
    const DedupWindows& dedup, Fill fill) {
  std::unique_ptr<ParameterTable> table(
      new ParameterTable(std::move(layout), std::move(optimizer)));
  for (const TableLayout::Chunk& place : table->layout_.chunks()) {
    RETURN_IF_ERROR(table->AddChunk(place, fill));
  }
  absl::MutexLock lock(&table->dedup_mu_);
  table->dedup_.Restore(dedup);
  return table;
}

absl::Status ParameterTable::AddChunk(const TableLayout::Chunk& place,
                                      Fill fill) {
  const wire::PartSpec& part = layout_.parts()[place.part];
  const int arrays = 1 + optimizer_->slot_names().size();
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
  chunks_.push_back(std::make_unique<Chunk>(std::move(contents)));
  return absl::OkStatus();
}

absl::StatusOr<Claim> ParameterTable::Push(
    uint64_t worker_incarnation, const wire::Push& push,
    absl::Span<const PayloadView> gradients) {
  RETURN_IF_ERROR(CheckSupported(push));
  ASSIGN_OR_RETURN(const std::vector<TableLayout::ChunkRange> ranges,
                   layout_.Resolve(push.range()));
  RETURN_IF_ERROR(CheckSizes(ranges, gradients));

  absl::ReaderMutexLock applying(&cut_mu_);
  ASSIGN_OR_RETURN(const Claim claim,
                   ClaimSequence(worker_incarnation, push.sequence()));
  if (claim == Claim::kDuplicate) return claim;
  for (size_t i = 0; i < ranges.size(); ++i) {
    FloatRuns gradient(gradients[i]);
    for (size_t chunk = ranges[i].first; chunk < ranges[i].last; ++chunk) {
      chunks_[chunk]->Apply(*optimizer_, gradient, *pool_);
    }
  }
  return claim;
}

absl::StatusOr<std::vector<PayloadRef>> ParameterTable::Pull(
    const wire::Pull& pull) const {
  RETURN_IF_ERROR(CheckSupported(pull));
  ASSIGN_OR_RETURN(const std::vector<TableLayout::ChunkRange> ranges,
                   layout_.Resolve(pull.range()));
  RETURN_IF_ERROR(CheckPullSize(ranges));
  std::vector<PayloadRef> payloads;
  for (const TableLayout::ChunkRange& range : ranges) {
    for (size_t chunk = range.first; chunk < range.last; ++chunk) {
      auto value = std::make_shared<ArrayRef>(chunks_[chunk]->Value());
      const void* data = value->data();
      const size_t bytes = value->size() * sizeof(float);
      payloads.push_back(
          {.data = data, .size = bytes, .owner = std::move(value)});
    }
  }
  return payloads;
}

TableCut ParameterTable::Cut() const {
  const std::vector<size_t> order = layout_.ChunksInCheckpointOrder();
  TableCut cut;
  cut.chunks.resize(order.size());
  {
    absl::WriterMutexLock no_push(&cut_mu_);
    for (size_t i = 0; i < order.size(); ++i) {
      cut.chunks[i].contents = chunks_[order[i]]->Contents();
    }
    absl::MutexLock lock(&dedup_mu_);
    cut.dedup = dedup_.Windows();
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const TableLayout::Chunk& place = layout_.chunks()[order[i]];
    cut.chunks[i].variable = layout_.parts()[place.part].variable();
    cut.chunks[i].first_element = place.first_element;
  }
  return cut;
}

absl::StatusOr<Claim> ParameterTable::ClaimSequence(uint64_t worker_incarnation,
                                                    uint64_t sequence) {
  absl::MutexLock lock(&dedup_mu_);
  return dedup_.Mark(worker_incarnation, sequence);
}

}  // namespace parasol
