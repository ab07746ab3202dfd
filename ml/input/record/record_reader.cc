#include "ml/input/record/record_reader.h"

#include <utility>

#include "base/status_macros.h"

namespace parasol {
namespace {

void PrefetchBytes(absl::string_view bytes) {
  bytes = bytes.substr(0, RecordReader::kPrefetchedBytes);
  constexpr size_t kCacheLineBytes = 64;
  for (size_t at = 0; at < bytes.size(); at += kCacheLineBytes) {
    __builtin_prefetch(bytes.data() + at);
  }
}

}  // namespace

RecordReader::RecordReader(const Records& records) : records_(records) {
  numbers_.fill(-1);
  if (records.blocks() != nullptr) held_.resize(records.blocks()->held());
}

absl::StatusOr<absl::string_view> RecordReader::Read(int64_t record) {
  if (records_.blocks() == nullptr) {
    RETURN_IF_ERROR(records_.CheckWhole(record));
    return records_.BytesOf(record);
  }
  absl::Status status;
  const Found* const found = Find(record, status);
  if (found == nullptr) return status;
  if (found->broken == nullptr) return found->bytes;
  return records_.blocks()->Corrupt(*found->block, record, 0, *found->broken);
}

void RecordReader::Prefetch(int64_t record) {
  if (records_.blocks() == nullptr) {
    PrefetchBytes(records_.BytesOf(record));
    return;
  }
  // Read() returns the error.
  absl::Status ignored;
  const Found* const found = Find(record, ignored);
  if (found != nullptr) PrefetchBytes(found->bytes);
}

absl::Status RecordReader::Corrupt(int64_t record, size_t inside,
                                   absl::string_view what) {
  if (records_.blocks() == nullptr) {
    return records_.Corrupt(record, inside, what);
  }
  absl::Status status;
  const Found* const found = Find(record, status);
  if (found == nullptr) return status;
  return records_.blocks()->Corrupt(*found->block, record, inside, what);
}

const RecordReader::Found* RecordReader::Find(int64_t record,
                                              absl::Status& status) {
  for (size_t i = 0; i < kAtHand; ++i) {
    if (numbers_[i] == record) return &found_[i];
  }
  const absl::StatusOr<const RecordBlock*> block =
      Hold(records_.blocks()->NumberOf(record));
  if (!block.ok()) {
    status = block.status();
    return nullptr;
  }
  const size_t place = next_found_++ % kAtHand;
  numbers_[place] = record;
  found_[place] = {.block = *block,
                   .bytes = (**block)[record],
                   .broken = (*block)->WhyBroken(record)};
  return &found_[place];
}

absl::StatusOr<const RecordBlock*> RecordReader::Hold(size_t number) {
  Held& held = held_[number % held_.size()];
  if (held.number == number) return held.block.get();
  ASSIGN_OR_RETURN(Block block, records_.blocks()->BlockOf(number));
  const RecordBlock* const taken = block.get();
  Block& dropped = dropped_[next_dropped_++ % kAtHand];
  // Of large ones few are held.
  if (taken->memory_bytes() > records_.blocks()->most_held_bytes()) {
    dropped = std::move(block);
    return taken;
  }
  dropped = std::exchange(held.block, std::move(block));
  held.number = number;
  return taken;
}

}  // namespace parasol
