#include "storage/checked_file.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr uint64_t kReadBytes = 1 << 20;

// Polynomials over GF(2) modulo Castagnoli's, bits reversed: bit 31 is x^0.
constexpr uint32_t kCastagnoli = 0x82f63b78;
constexpr uint32_t kOne = uint32_t{1} << 31;

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b >> 1) ^ (b & 1 ? kCastagnoli : 0);  // times x
  }
  return product;
}

// Element i is x^(8 * 2^i): what 2^i bytes multiply by.
constexpr std::array<uint32_t, 64> PowersOfBytes() {
  std::array<uint32_t, 64> powers = {};
  uint32_t power = kOne >> 8;
  for (uint32_t& p : powers) {
    p = power;
    power = Multiply(power, power);
  }
  return powers;
}

constexpr std::array<uint32_t, 64> kPowers = PowersOfBytes();

}  // namespace

// As a crc is linear, the first bytes' is multiplied by x for each bit that
// follows.
uint32_t ConcatCrc32c(uint32_t first, uint32_t second, uint64_t second_bytes) {
  for (int i = 0; second_bytes != 0; ++i, second_bytes >>= 1) {
    if (second_bytes & 1) first = Multiply(kPowers[i], first);
  }
  return first ^ second;
}

absl::StatusOr<std::unique_ptr<CheckedFile>> CheckedFile::Open(
    const std::string& path, const durable::CheckpointFile& file) {
  ASSIGN_OR_RETURN(FileDescriptor descriptor,
                   FileDescriptor::OpenForReading(path));
  const off_t size = lseek(descriptor.get(), 0, SEEK_END);
  if (size < 0) return ReadError(errno, "seek in", path);
  if (static_cast<uint64_t>(size) != file.bytes()) {
    return absl::DataLossError(absl::StrCat(
        path, ": has ", size, " bytes, should have ", file.bytes()));
  }
  return std::unique_ptr<CheckedFile>(
      new CheckedFile(path, std::move(descriptor), file));
}

absl::Status CheckedFile::Read(uint64_t offset, size_t count, char* out) {
  size_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(descriptor_.get(), out + done, count - done, offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(errno, "read", path_);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(
          path_, ": ends at byte ", offset + done, ", should have ", size_));
    }
    done += got;
  }
  Cover(offset, absl::string_view(out, count));
  return absl::OkStatus();
}

void CheckedFile::Cover(uint64_t offset, absl::string_view bytes) {
  absl::MutexLock lock(&mu_);
  read_ += bytes.size();
  while (!bytes.empty()) {
    // The part in a range that was read before, then the part up to the next.
    auto next = ranges_.upper_bound(offset);
    uint64_t known = 0;
    if (next != ranges_.begin()) {
      known = std::max(std::prev(next)->second.end, offset) - offset;
    }
    known = std::min<uint64_t>(known, bytes.size());
    offset += known;
    bytes.remove_prefix(known);
    const uint64_t gap =
        next == ranges_.end()
            ? bytes.size()
            : std::min<uint64_t>(bytes.size(), next->first - offset);
    if (gap > 0) Insert(offset, bytes.substr(0, gap));
    offset += gap;
    bytes.remove_prefix(gap);
  }
}

void CheckedFile::Insert(uint64_t offset, absl::string_view bytes) {
  covered_ += bytes.size();
  Range range = {.end = offset + bytes.size(), .crc = Crc32cOf(bytes)};
  const auto next = ranges_.find(range.end);
  if (next != ranges_.end()) {
    range.crc = ConcatCrc32c(range.crc, next->second.crc,
                             next->second.end - next->first);
    range.end = next->second.end;
    ranges_.erase(next);
  }
  auto before = ranges_.upper_bound(offset);
  if (before != ranges_.begin() && (--before)->second.end == offset) {
    before->second.crc =
        ConcatCrc32c(before->second.crc, range.crc, range.end - offset);
    before->second.end = range.end;
    return;
  }
  ranges_.emplace(offset, range);
}

std::pair<uint64_t, uint64_t> CheckedFile::FirstHole() const {
  absl::MutexLock lock(&mu_);
  auto range = ranges_.begin();
  if (range == ranges_.end()) return {0, size_};
  if (range->first > 0) return {0, range->first};
  const uint64_t begin = range->second.end;
  return {begin, ++range == ranges_.end() ? size_ : range->first};
}

absl::Status CheckedFile::Verify() {
  std::unique_ptr<char[]> buffer;
  for (auto hole = FirstHole(); hole.first < hole.second; hole = FirstHole()) {
    if (buffer == nullptr) {
      buffer = std::make_unique_for_overwrite<char[]>(kReadBytes);
    }
    RETURN_IF_ERROR(Read(hole.first,
                         std::min(kReadBytes, hole.second - hole.first),
                         buffer.get()));
  }
  absl::MutexLock lock(&mu_);
  const uint32_t crc = ranges_.empty() ? 0 : ranges_.begin()->second.crc;
  if (crc == crc_) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, ": its bytes don't have the manifest's crc32c"));
}

uint64_t CheckedFile::bytes_covered() const {
  absl::MutexLock lock(&mu_);
  return covered_;
}

uint64_t CheckedFile::bytes_read() const {
  absl::MutexLock lock(&mu_);
  return read_;
}

}  // namespace parasol
