#include "storage/event_file.h"

#include <unistd.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "base/uri/uri_path.h"
#include "storage/durable_file.h"
#include "storage/proto_bytes.h"

namespace parasol {
namespace {

using proto_bytes::AppendBytes;
using proto_bytes::AppendDouble;
using proto_bytes::AppendKey;
using proto_bytes::AppendVarint;
using proto_bytes::kFixed32;
using proto_bytes::kVarint;

// Fields of tensorflow.Event, its Summary and Summary.Value, and SessionLog.
enum : int {
  kWallTime = 1,
  kStep = 2,
  kFileVersion = 3,
  kSummary = 5,
  kSessionLog = 7,
  kSummaryValue = 1,
  kTag = 1,
  kSimpleValue = 2,
  kHistogram = 5,
  kStatus = 1,
};
constexpr int kStatusStart = 1;

std::string EventAt(absl::Time now) {
  std::string event;
  AppendDouble(kWallTime, absl::ToDoubleSeconds(now - absl::UnixEpoch()),
               event);
  return event;
}

void AppendStep(int64_t step, std::string& event) {
  if (step == 0) return;  // proto3 leaves it out
  AppendKey(kStep, kVarint, event);
  AppendVarint(static_cast<uint64_t>(step), event);
}

// Returns the event of a summary that has one value, which is `entry`.
std::string SummaryEvent(absl::Time now, int64_t step,
                         absl::string_view entry) {
  std::string summary;
  AppendBytes(kSummaryValue, entry, summary);
  std::string event = EventAt(now);
  AppendStep(step, event);
  AppendBytes(kSummary, summary, event);
  return event;
}

uint32_t MaskedCrc(absl::string_view bytes) { return MaskCrc(Crc32cOf(bytes)); }

}  // namespace

std::string FrameRecord(absl::string_view bytes) {
  std::string frame;
  proto_bytes::AppendLittleEndian(uint64_t{bytes.size()}, frame);
  proto_bytes::AppendLittleEndian(MaskedCrc(frame), frame);
  frame.append(bytes.data(), bytes.size());
  proto_bytes::AppendLittleEndian(MaskedCrc(bytes), frame);
  return frame;
}

std::string VersionEvent(absl::Time now) {
  std::string event = EventAt(now);
  AppendBytes(kFileVersion, "brain.Event:2", event);
  return event;
}

std::string StartEvent(absl::Time now, int64_t step) {
  std::string event = EventAt(now);
  AppendStep(step, event);
  std::string log;
  AppendKey(kStatus, kVarint, log);
  AppendVarint(kStatusStart, log);
  AppendBytes(kSessionLog, log, event);
  return event;
}

std::string ScalarEvent(absl::Time now, int64_t step, absl::string_view tag,
                        double value) {
  std::string entry;
  AppendBytes(kTag, tag, entry);
  AppendKey(kSimpleValue, kFixed32, entry);
  proto_bytes::AppendLittleEndian(
      std::bit_cast<uint32_t>(static_cast<float>(value)), entry);
  return SummaryEvent(now, step, entry);
}

std::string HistogramEvent(absl::Time now, int64_t step, absl::string_view tag,
                           const ValueHistogram& histogram) {
  std::string entry;
  AppendBytes(kTag, tag, entry);
  AppendBytes(kHistogram, HistogramBytes(histogram), entry);
  return SummaryEvent(now, step, entry);
}

EventFile::EventFile(std::string directory, std::string name,
                     int64_t first_step)
    : directory_(std::move(directory)),
      name_(std::move(name)),
      first_step_(first_step) {}

EventFile::~EventFile() {
  // The process may end, and files of a store are not there before.
  if (!IsUri(path_)) return;
  const absl::Status synced = SyncAppended(path_);
  if (!synced.ok()) LOG(WARNING) << synced.message();
}

absl::Status EventFile::Add(int64_t step, const Scalars& scalars,
                            const Histograms& histograms, absl::Time now,
                            Durability durability) {
  if (IsUri(path_) && bytes_ >= kLargeInStore &&
      durability == Durability::kSynced) {
    RETURN_IF_ERROR(SyncAppended(path_));
    path_.clear();
    bytes_ = 0;
  }
  std::string records;
  std::string path = path_;
  if (path.empty()) {
    RETURN_IF_ERROR(MakeDirectories(directory_));
    path = JoinedPath(directory_,
                      absl::StrFormat("events.out.tfevents.%010d.%s",
                                      absl::ToUnixSeconds(now), name_));
    records = FrameRecord(VersionEvent(now));
    if (first_step_ > 0) {
      absl::StrAppend(&records, FrameRecord(StartEvent(now, first_step_)));
    }
  }
  for (const auto& [tag, value] : scalars) {
    absl::StrAppend(&records, FrameRecord(ScalarEvent(now, step, tag, value)));
  }
  for (const auto& [tag, histogram] : histograms) {
    if (histogram.num == 0) continue;
    absl::StrAppend(&records,
                    FrameRecord(HistogramEvent(now, step, tag, histogram)));
  }
  RETURN_IF_ERROR(durability == Durability::kSynced
                      ? AppendDurably(path, records)
                      : Append(path, records));
  path_ = path;
  first_step_ = 0;
  bytes_ += records.size();
  return absl::OkStatus();
}

std::string EventFileName() {
  char host[256] = "localhost";
  if (gethostname(host, sizeof(host)) != 0) strcpy(host, "localhost");
  host[sizeof(host) - 1] = '\0';
  return absl::StrCat(host, ".", getpid());
}

}  // namespace parasol
