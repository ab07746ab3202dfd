#include "storage/journal/journal_writer.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/crc32c.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/durable_file.h"

namespace parasol {
namespace {

// Writes all of `parts`, which it uses up. Returns the errno of a failure.
int WriteParts(int file, std::vector<iovec>& parts) {
  size_t first = 0;
  while (first < parts.size()) {
    const int count =
        static_cast<int>(std::min<size_t>(parts.size() - first, IOV_MAX));
    const ssize_t result = writev(file, parts.data() + first, count);
    if (result < 0 && errno == EINTR) continue;
    if (result < 0) return errno;
    auto written = static_cast<size_t>(result);
    while (first < parts.size() && written >= parts[first].iov_len) {
      written -= parts[first++].iov_len;
    }
    if (first == parts.size()) break;
    parts[first].iov_base = static_cast<char*>(parts[first].iov_base) + written;
    parts[first].iov_len -= written;
  }
  return 0;
}

iovec PartOf(absl::string_view bytes) {
  return {.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<JournalWriter>> JournalWriter::Create(
    const std::string& directory, const SegmentHeader& header, Kept kept,
    std::unique_ptr<const JournalFence> fence) {
  RETURN_IF_ERROR(MakeDirectories(directory));
  // Other shards make the parent, too, and may be about to sync its name.
  const auto parent = std::filesystem::absolute(directory).parent_path();
  RETURN_IF_ERROR(SyncDirectory(parent));
  RETURN_IF_ERROR(SyncDirectory(parent.parent_path()));
  std::unique_ptr<JournalWriter> writer(
      new JournalWriter(directory, header, kept, std::move(fence)));
  {
    absl::MutexLock lock(&writer->mu_);
    RETURN_IF_ERROR(writer->Begin(header));
  }
  RETURN_IF_ERROR(writer->Flush());
  if (kept == Kept::kOnDisk) {
    writer->thread_ = std::thread([writer = writer.get()] { writer->Run(); });
  }
  return writer;
}

JournalWriter::JournalWriter(std::string directory, const SegmentHeader& header,
                             Kept kept,
                             std::unique_ptr<const JournalFence> fence)
    : directory_(std::move(directory)),
      kept_(kept),
      fence_(std::move(fence)),
      journal_(header.journal),
      next_record_(header.first_record),
      kept_up_to_(header.first_record - 1) {}

void JournalWriter::Close() {
  std::vector<Waiting> waiting;
  absl::Status outcome;
  {
    absl::MutexLock lock(&mu_);
    is_ending_ = true;
    if (broken_.ok()) broken_ = absl::UnavailableError("the journal is closed");
    outcome = broken_;
    waiting = std::move(waiting_);
    waiting_.clear();
  }
  if (thread_.joinable()) thread_.join();
  for (const Waiting& one : waiting) one.done(outcome);
}

std::string JournalWriter::PathOf(uint64_t segment) const {
  return absl::StrCat(directory_, "/", SegmentName(segment));
}

absl::Status JournalWriter::Begin(const SegmentHeader& header) {
  const std::string path = PathOf(header.segment);
  absl::StatusOr<FileDescriptor> opened =
      FileDescriptor::Open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
  // EEXIST, of a file whose path is none.
  if (absl::IsInvalidArgument(opened.status()) && FileSize(path).ok()) {
    return absl::UnavailableError(absl::StrCat(
        path,
        ": another process that was stopped has begun this segment; who "
        "takes the journal again reads it"));
  }
  ASSIGN_OR_RETURN(FileDescriptor file, std::move(opened));
  const std::string bytes = header.Encode();
  std::vector<iovec> parts = {PartOf(bytes)};
  const int code = WriteParts(file.get(), parts);
  if (code != 0) {
    unlink(path.c_str());
    return FileError(code, "write", path);
  }
  if (kept_ == Kept::kOnDisk) {
    if (file_ != nullptr) ended_.push_back(file_);
    has_new_names_ = true;
  }
  bytes_before_ += size_;
  file_ = std::make_shared<const FileDescriptor>(std::move(file));
  size_ = bytes.size();
  header_ = header;
  return absl::OkStatus();
}

absl::Status JournalWriter::Append(absl::Span<const absl::string_view> pieces) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(broken_);
  return Write(pieces);
}

absl::Status JournalWriter::Write(absl::Span<const absl::string_view> pieces) {
  RecordHeader header = {.record = next_record_};
  uint64_t length = 0;
  uint32_t crc = 0;
  for (const absl::string_view piece : pieces) {
    length += piece.size();
    crc = ExtendCrc32c(crc, piece);
  }
  if (length > kMaxRecordBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a journal's record of ",
                                                   length, " bytes: more than ",
                                                   kMaxRecordBytes));
  }
  header.length = static_cast<uint32_t>(length);
  header.data_crc = MaskCrc(crc);
  char head[RecordHeader::kBytes];
  header.Encode(head);
  std::vector<iovec> parts = {PartOf({head, sizeof head})};
  for (const absl::string_view piece : pieces) {
    if (!piece.empty()) parts.push_back(PartOf(piece));
  }
  const int code = WriteParts(file_->get(), parts);
  if (code != 0) {
    TakeBack();
    return absl::UnavailableError(absl::StrCat(
        FileError(code, "write", PathOf(header_.segment)).message(),
        "; pushes wait until the journal can be written"));
  }
  size_ += sizeof head + length;
  ++next_record_;
  // Asked behind the write: who has taken the journal before may not read it.
  RETURN_IF_ERROR(CheckFence());
  if (kept_ == Kept::kWritten) kept_up_to_ = next_record_ - 1;
  return absl::OkStatus();
}

absl::Status JournalWriter::CheckFence() {
  if (fence_ == nullptr || fence_->IsHeld()) return absl::OkStatus();
  broken_ = absl::UnavailableError(
      absl::StrCat(directory_,
                   ": another process has taken this journal; pushes go to the "
                   "ps that has taken this one's place"));
  LOG(ERROR) << broken_.message();
  return broken_;
}

void JournalWriter::TakeBack() {
  if (ftruncate(file_->get(), static_cast<off_t>(size_)) == 0) return;
  broken_ = absl::UnavailableError(absl::StrCat(
      FileError(errno, "cut", PathOf(header_.segment)).message(),
      " after a failed write; pushes wait until this ps is started again"));
  LOG(ERROR) << broken_.message();
}

void JournalWriter::WhenKept(Done done) {
  absl::Status outcome;
  {
    absl::MutexLock lock(&mu_);
    outcome = broken_;
    if (outcome.ok() && kept_up_to_ < next_record_ - 1) {
      waiting_.push_back({.record = next_record_ - 1, .done = std::move(done)});
      return;
    }
  }
  done(outcome);
}

std::vector<JournalWriter::Waiting> JournalWriter::TakeReady() {
  const auto end = std::find_if(
      waiting_.begin(), waiting_.end(),
      [this](const Waiting& one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return broken_.ok() && one.record > kept_up_to_;
      });
  std::vector<Waiting> ready(std::make_move_iterator(waiting_.begin()),
                             std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return ready;
}

void JournalWriter::Run() {
  auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_ending_ || !waiting_.empty();
  };
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      if (is_ending_) return;
    }
    // Who waits is told of an error.
    Flush().IgnoreError();
  }
}

absl::Status JournalWriter::Flush() {
  std::vector<Waiting> ready;
  absl::Status outcome;
  {
    absl::MutexLock sync_lock(&sync_mu_);
    std::vector<File> files;
    bool has_new_names = false;
    uint64_t written = 0;
    {
      absl::MutexLock lock(&mu_);
      if (kept_ == Kept::kWritten) return broken_;
      if (broken_.ok()) {
        files = std::exchange(ended_, {});
        files.push_back(file_);
        has_new_names = std::exchange(has_new_names_, false);
        written = next_record_ - 1;
      }
    }
    const absl::Status synced = SyncFiles(files, has_new_names);
    absl::MutexLock lock(&mu_);
    // A file system of several machines shows others the records from now on.
    if (synced.ok() && broken_.ok() && CheckFence().ok()) {
      kept_up_to_ = std::max(kept_up_to_, written);
    } else if (broken_.ok()) {
      // What the disk has of the files now is not known.
      broken_ = absl::UnavailableError(absl::StrCat(
          synced.message(), "; pushes wait until this ps is started again"));
      LOG(ERROR) << broken_.message();
    }
    outcome = broken_;
    ready = TakeReady();
  }
  for (const Waiting& one : ready) one.done(outcome);
  return outcome;
}

absl::Status JournalWriter::SyncFiles(absl::Span<const File> files,
                                      bool has_new_names) {
  for (const File& file : files) {
    if (fdatasync(file->get()) != 0) {
      return FileError(errno, "fdatasync a segment in", directory_);
    }
  }
  return has_new_names ? SyncDirectory(directory_) : absl::OkStatus();
}

absl::StatusOr<uint64_t> JournalWriter::BeginSegment(int64_t progress) {
  absl::MutexLock lock(&mu_);
  RETURN_IF_ERROR(broken_);
  // The name may be the one that who has taken the journal is about to make.
  RETURN_IF_ERROR(CheckFence());
  SegmentHeader header = header_;
  ++header.segment;
  header.first_record = next_record_;
  header.bytes_before = size_;
  header.progress = progress;
  RETURN_IF_ERROR(Begin(header));
  return header.segment;
}

void JournalWriter::RemoveBefore(uint64_t segment) {
  const auto names = ListDirectory(directory_);
  if (!names.ok()) {
    LOG(WARNING) << names.status().message();
    return;
  }
  for (const std::string& name : *names) {
    const auto number = SegmentOfName(name);
    const bool is_old = number.has_value() && *number < segment;
    if (!is_old && !IsUnreadName(name)) continue;
    const std::string path = absl::StrCat(directory_, "/", name);
    if (unlink(path.c_str()) != 0) {
      LOG(WARNING) << FileError(errno, "remove", path).message();
    }
  }
}

uint64_t JournalWriter::last_record() const {
  absl::MutexLock lock(&mu_);
  return next_record_ - 1;
}

uint64_t JournalWriter::segment() const {
  absl::MutexLock lock(&mu_);
  return header_.segment;
}

uint64_t JournalWriter::bytes_written() const {
  absl::MutexLock lock(&mu_);
  return bytes_before_ + size_;
}

}  // namespace parasol
