#include "ml/input/topic/topic_source.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ml/input/file/temporary_file.h"
#include "ml/input/topic/record_merge.h"

namespace parasol {
namespace {

constexpr size_t kWrittenBytes = size_t{1} << 20;

absl::Status ReadBack(const TemporaryFile& file, const PlacedRecord& record,
                      std::string& out) {
  const size_t before = out.size();
  out.resize(before + record.bytes);
  for (size_t done = 0; done < record.bytes;) {
    const ssize_t n =
        pread(file.descriptor(), out.data() + before + done,
              record.bytes - done, static_cast<off_t>(record.begin + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      return absl::UnavailableError(
          "a temporary file (TMPDIR) can't be read back");
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// The records of a slice as they come, and in their order.
class SliceRecords {
 public:
  SliceRecords(size_t partitions, TemporaryFile arrived)
      : arrived_(std::move(arrived)), partitions_(partitions) {}

  absl::Status Add(size_t partition, int64_t milliseconds,
                   absl::string_view bytes) {
    partitions_[partition].push_back(
        {.milliseconds = milliseconds,
         .begin = arrived_.size() + pending_.size(),
         .bytes = static_cast<uint32_t>(bytes.size())});
    absl::StrAppend(&pending_, bytes);
    return pending_.size() < kWrittenBytes ? absl::OkStatus() : Flush();
  }

  absl::StatusOr<TemporaryFile> Sorted() {
    RETURN_IF_ERROR(Flush());
    ASSIGN_OR_RETURN(TemporaryFile sorted, TemporaryFile::Create());
    std::string bytes;
    for (const PlacedRecord& record : Merged(partitions_)) {
      RETURN_IF_ERROR(ReadBack(arrived_, record, bytes));
      if (bytes.size() < kWrittenBytes) continue;
      RETURN_IF_ERROR(sorted.Append(bytes));
      bytes.clear();
    }
    RETURN_IF_ERROR(sorted.Append(bytes));
    return sorted;
  }

 private:
  absl::Status Flush() {
    RETURN_IF_ERROR(arrived_.Append(pending_));
    pending_.clear();
    return absl::OkStatus();
  }

  TemporaryFile arrived_;
  std::string pending_;
  std::vector<std::vector<PlacedRecord>> partitions_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<TopicSource>> TopicSource::Open(
    const std::string& uri, const job::Dataset& dataset, std::string settings,
    absl::Duration patience) {
  ASSIGN_OR_RETURN(TopicUri topic, ParseTopicUri(uri));
  RecordFrame frame = RecordFrameOf(dataset);
  if (frame == nullptr) {
    return absl::InvalidArgumentError("this format has no topics");
  }
  return std::unique_ptr<TopicSource>(new TopicSource(
      std::move(topic), std::move(frame), std::move(settings), patience));
}

absl::Status TopicSource::Connect() {
  if (consumer_ != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(consumer_, TopicConsumer::Create({.topic = topic_,
                                                     .settings = settings_,
                                                     .patience = patience_}));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PartitionOffsets>> TopicSource::Offsets() {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Connect());
  return consumer_->Offsets();
}

absl::StatusOr<TopicSource::Brought> TopicSource::Bring(const std::string& name,
                                                        bool skips) {
  ASSIGN_OR_RETURN(const TopicSlice slice, ParseSlice(name, topic_.topic));
  return Bring(slice, skips);
}

absl::StatusOr<TopicSource::Brought> TopicSource::Bring(const TopicSlice& slice,
                                                        bool skips) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(Connect());
  ASSIGN_OR_RETURN(TemporaryFile arrived, TemporaryFile::Create());
  SliceRecords records(slice.ranges.size(), std::move(arrived));
  Brought brought;
  RETURN_IF_ERROR(
      consumer_->Read(slice, [&](const TopicRecord& record) -> absl::Status {
        if (!record.value) return absl::OkStatus();
        const absl::StatusOr<std::string> framed = frame_(*record.value);
        if (framed.ok()) {
          return records.Add(record.range, record.milliseconds, *framed);
        }
        const std::string why =
            absl::StrCat(topic_.Of(topic_.topic), " partition ",
                         slice.ranges[record.range].partition, " offset ",
                         record.offset, ": ", framed.status().message());
        if (!skips) return absl::DataLossError(why);
        if (brought.malformed++ == 0) brought.malformed_why = why;
        return absl::OkStatus();
      }));
  ASSIGN_OR_RETURN(TemporaryFile sorted, records.Sorted());
  brought.copy = std::make_unique<const SliceCopy>(topic_.Of(slice.Name()),
                                                   std::move(sorted));
  return brought;
}

}  // namespace parasol
