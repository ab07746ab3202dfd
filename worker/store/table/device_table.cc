#include "worker/store/table/device_table.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

// Bytes of rows in a batch of Visit().
constexpr size_t kBatchBytes = 16 << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceTable>> DeviceTable::Create(
    const Options& options, const Optimizer& optimizer, RowMemory& memory,
    Device& device) {
  ASSIGN_OR_RETURN(RowInitializer initializer,
                   RowInitializer::Create(options.initializer, options.seed,
                                          options.name, options.width));
  std::unique_ptr<DeviceTable> table(new DeviceTable(
      options, std::move(initializer), optimizer, memory, device));
  ASSIGN_OR_RETURN(table->copied_, device.NewEvent());
  return table;
}

DeviceTable::DeviceTable(const Options& options, RowInitializer initializer,
                         const Optimizer& optimizer, RowMemory& memory,
                         Device& device)
    : options_(options),
      initializer_(std::move(initializer)),
      optimizer_(optimizer),
      device_(device),
      blocks_({.floats = optimizer.FloatsOfRow(options.width),
               .has_marks =
                   optimizer.other_rows() != Optimizer::OtherRows::kUntouched,
               .block_bytes = options.block_bytes},
              memory, device) {}

absl::StatusOr<absl::Span<const int32_t>> DeviceTable::Find(
    absl::Span<const uint64_t> hashes, absl::Span<int32_t> probed,
    SeatSwap& swap) {
  most_at_once_ = std::max(most_at_once_, hashes.size());
  if (cache_ != nullptr && hashes.size() > cache_->seats()) {
    RETURN_IF_ERROR(AddSeats(hashes.size()));
  }
  RETURN_IF_ERROR(Number(hashes, probed));
  if (cache_ == nullptr) return probed;
  places_.resize(hashes.size());
  RETURN_IF_ERROR(cache_->Take(probed, absl::MakeSpan(places_), swap));
  return absl::MakeConstSpan(places_);
}

absl::Status DeviceTable::Number(absl::Span<const uint64_t> hashes,
                                 absl::Span<int32_t> probed) {
  numbers_.Find(hashes, probed);
  const absl::Span<const uint64_t> missing = numbers_.missing();
  if (missing.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(MakeRows(
      missing, [&](size_t i, float* row) { return Fill(missing[i], row); }));
  numbers_.AddMissing(probed);
  return absl::OkStatus();
}

void DeviceTable::Fill(uint64_t id, float* row) const {
  initializer_.Fill(id, row);
  optimizer_.FillSlots(options_.width, row);
}

absl::Status DeviceTable::Insert(const RowBatch& batch) {
  if (batch.rows.size() != batch.ids.size() * floats()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", options_.name, ": ", batch.ids.size(), " rows of ", floats(),
        " float32 can't be in an array of ", batch.rows.size()));
  }
  const std::optional<uint64_t> known = numbers_.FindKnown(batch.ids);
  if (known.has_value()) {
    return absl::AlreadyExistsError(
        absl::StrCat("table ", options_.name, ": row ", *known));
  }
  if (!batch.ids.empty()) {
    RETURN_IF_ERROR(MakeRows(batch.ids, [&](size_t i, float* row) {
      std::copy_n(batch.rows.data() + i * floats(), floats(), row);
    }));
    numbers_.Add(batch.ids);
  }
  updates_ = std::max(updates_, batch.updates);
  return absl::OkStatus();
}

absl::Status DeviceTable::MakeRows(
    absl::Span<const uint64_t> ids,
    absl::FunctionRef<void(size_t, float*)> fill) {
  if (ids.size() > RowNumbers::kMaxRows - numbers_.size()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(ids.size(), " more rows than ", numbers_.size(),
                     " are more than ", RowNumbers::kMaxRows));
  }
  if (cache_ != nullptr) {
    for (size_t i = 0; i < ids.size(); ++i) {
      fill(i, cache_->Make(numbers_.size() + i));
    }
  } else {
    ASSIGN_OR_RETURN(float* const rows, Stage(ids.size()));
    for (size_t i = 0; i < ids.size(); ++i) fill(i, rows + i * floats());
    RETURN_IF_ERROR(CopyStaged(ids.size()));
  }
  return absl::OkStatus();
}

// The rows that were staged last may still be on their way.
absl::StatusOr<float*> DeviceTable::Stage(size_t rows) {
  RETURN_IF_ERROR(blocks_.Reserve(numbers_.size() + rows));
  RETURN_IF_ERROR(device_.Wait(*copied_));
  const size_t elements = rows * floats();
  if (elements > staged_.size()) {
    ASSIGN_OR_RETURN(staged_, device_.NewHostArray<float>(
                                  std::max(elements, staged_.size() * 3 / 2)));
  }
  return staged_.data();
}

absl::Status DeviceTable::CopyStaged(size_t count) {
  const size_t per_block = blocks_.rows_per_block();
  for (size_t done = 0; done < count;) {
    const size_t number = numbers_.size() + done;
    const size_t some = std::min(count - done, per_block - number % per_block);
    RETURN_IF_ERROR(device_.Copy(
        Device::Stream::kCopyIn,
        absl::MakeConstSpan(staged_.data() + done * floats(), some * floats()),
        blocks_.row(number)));
    done += some;
  }
  return device_.Record(Device::Stream::kCopyIn, *copied_);
}

// Some may have been added where not all could be.
absl::Status DeviceTable::AddSeats(size_t seats) {
  const absl::Status reserved = blocks_.Reserve(seats);
  RETURN_IF_ERROR(cache_->Resize(capacity()));
  return reserved;
}

absl::StatusOr<bool> DeviceTable::GiveBack(size_t bytes) {
  const size_t without = blocks_.CapacityWithout(bytes);
  if (without < std::max<size_t>(most_at_once_, 1)) return false;
  if (cache_ == nullptr) UseCache();
  RETURN_IF_ERROR(device_.Synchronize());
  RETURN_IF_ERROR(cache_->Resize(without));
  blocks_.Truncate(without);
  return true;
}

void DeviceTable::UseCache() {
  CHECK(optimizer_.other_rows() == Optimizer::OtherRows::kUntouched);
  CHECK_GT(capacity(), 0);
  // Rows on their way to the device need it no more.
  cache_ = std::make_unique<RowCache>(blocks_, numbers_.size());
}

absl::Status DeviceTable::Visit(RowVisit visit) {
  return VisitRows(visit, /*forgets=*/false);
}

absl::Status DeviceTable::Drain(RowVisit visit) {
  return VisitRows(visit, /*forgets=*/true);
}

absl::Status DeviceTable::VisitRows(RowVisit visit, bool forgets) {
  if (numbers_.size() == 0) return visit({.updates = updates_});
  if (cache_ == nullptr) {
    return blocks_.Fetch(
        0, numbers_.size(), [&](size_t first, absl::Span<const float> rows) {
          return VisitBlock(rows.data(), first, rows.size() / floats(), visit);
        });
  }
  RETURN_IF_ERROR(cache_->WriteBack());
  const size_t per_block = blocks_.rows_per_block();
  for (size_t first = 0; first < numbers_.size(); first += per_block) {
    RETURN_IF_ERROR(VisitBlock(cache_->on_host(first), first,
                               std::min(per_block, numbers_.size() - first),
                               visit));
    if (forgets) cache_->Forget(first);
  }
  return absl::OkStatus();
}

// Rows `first` and those behind it lie at `rows`.
absl::Status DeviceTable::VisitBlock(const float* rows, size_t first,
                                     size_t count, RowVisit visit) {
  const absl::Span<const uint64_t> all = numbers_.ids();
  const size_t in_batch =
      std::max<size_t>(1, kBatchBytes / (floats() * sizeof(float)));
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return all[first + a] < all[first + b];
  });
  std::vector<uint64_t> ids;
  std::vector<float> values;
  for (size_t begin = 0; begin < count; begin += in_batch) {
    ids.clear();
    values.clear();
    for (size_t i = begin; i < std::min(begin + in_batch, count); ++i) {
      const float* const row = rows + order[i] * floats();
      ids.push_back(all[first + order[i]]);
      values.insert(values.end(), row, row + floats());
    }
    RETURN_IF_ERROR(visit({.updates = updates_, .ids = ids, .rows = values}));
  }
  return absl::OkStatus();
}

absl::Status DeviceTable::Read(uint64_t id, absl::Span<float> out) {
  CHECK_EQ(out.size(), options_.width);
  const uint64_t hash = RowHash(id);
  int32_t number = RowNumbers::kMissing;
  RETURN_IF_ERROR(
      Number(absl::MakeConstSpan(&hash, 1), absl::MakeSpan(&number, 1)));
  if (cache_ == nullptr) return ReadFromDevice(number, out);
  const int32_t seat = cache_->seat_of(number);
  if (seat != RowSeats::kNone) return ReadFromDevice(seat, out);
  std::copy_n(cache_->on_host(number), out.size(), out.data());
  return absl::OkStatus();
}

absl::Status DeviceTable::ReadFromDevice(int32_t place, absl::Span<float> out) {
  if (fetched_.size() == 0) {
    ASSIGN_OR_RETURN(fetched_, device_.NewHostArray<float>(options_.width));
  }
  RETURN_IF_ERROR(device_.Synchronize());
  RETURN_IF_ERROR(
      device_.Copy(Device::Stream::kCompute,
                   absl::Span<const float>(blocks_.row(place), options_.width),
                   fetched_.data()));
  RETURN_IF_ERROR(device_.Synchronize());
  std::copy_n(fetched_.data(), options_.width, out.data());
  return absl::OkStatus();
}

}  // namespace parasol
