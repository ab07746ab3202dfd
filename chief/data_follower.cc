#include "chief/data_follower.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/shown_text.h"
#include "base/status_macros.h"
#include "cluster/job/followed/followed_set.h"
#include "ml/input/file/file_set.h"
#include "ml/input/file/open_error.h"
#include "ml/input/input_pipeline.h"
#include "ml/input/object/object_uri.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

constexpr absl::Duration kLogInterval = absl::Seconds(10);
// A look at a large folder takes at most this share of the time.
constexpr double kMostLooking = .1;
// Larger files are counted block by block.
constexpr uint64_t kMostInMemory = uint64_t{64} << 20;

// A message, a log and a manifest have texts of UTF-8 alone.
bool IsUtf8(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace) ==
         Json(text).dump(-1, ' ', false, Json::error_handler_t::ignore);
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

DataFollower::DataFollower(Options options, FollowedLog log,
                           const FollowedFiles& files, Clock& clock)
    : options_(std::move(options)),
      patterns_(FilePatterns(options_.dataset)),
      clock_(clock),
      log_(std::move(log)),
      files_(files) {
  const FollowedLog::Known known = log_.TakeKnown();
  names_ = NewFiles(files.last_path(), known.paths, known.are_all);
  for (const durable::FollowedFile& file : known.newest) {
    sizes_.Take(file.path(), file.bytes());
  }
  files_.Forget(files_.batches());
}

void DataFollower::Start() {
  thread_ = std::thread([this] { Run(); });
}

void DataFollower::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  thread_.join();
}

bool DataFollower::IsStopping() {
  absl::MutexLock lock(&mu_);
  return stopping_;
}

void DataFollower::Run() {
  do {
    Look();
    has_room_ = options_.on_look(look_);
  } while (Pause());
}

bool DataFollower::Pause() {
  const absl::Time until =
      clock_.Now() + std::max(options_.interval, listing_ * (1 / kMostLooking));
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      if (clock_.AwaitWithTimeout(
              mu_, absl::Condition(&stopping_),
              std::min(options_.interval, until - clock_.Now()))) {
        return false;
      }
    }
    // What was found waits for room, not for the folders.
    if (was_full_) has_room_ = options_.on_look(look_);
    if ((was_full_ && has_room_) || clock_.Now() >= until) return true;
  }
}

void DataFollower::Look() {
  look_.trouble.clear();
  was_full_ = false;
  if (options_.topic == nullptr) {
    LookAtFolders();
  } else {
    LookAtTopic();
  }
}

std::optional<SliceCut> DataFollower::Cut(
    const std::vector<PartitionOffsets>& offsets) {
  const std::string& topic = options_.topic->topic().topic;
  std::optional<TopicSlice> last;
  if (!files_.last_path().empty()) {
    absl::StatusOr<TopicSlice> parsed = ParseSlice(files_.last_path(), topic);
    if (!parsed.ok()) {
      look_.failure = absl::InvalidArgumentError(
          absl::StrCat("train.follow: what was taken last is unknown: ",
                       parsed.status().message()));
      return std::nullopt;
    }
    last = *std::move(parsed);
  }
  const absl::Time now = clock_.Now();
  SliceCut cut = NextSlice(topic, last, offsets, options_.dataset.batch_size(),
                           now >= takes_rest_at_);
  if (!cut.trouble.empty()) {
    look_.trouble = cut.trouble;
    LOG_EVERY(WARNING, kLogInterval) << cut.trouble;
  }
  const int64_t of_cut = cut.slice ? cut.slice->offsets() : 0;
  look_.left = of_cut == 0 ? 0 : 1 + cut.left / of_cut;
  look_.left_records = of_cut + cut.left;
  takes_rest_at_ = of_cut > 0 || cut.left == 0
                       ? absl::InfiniteFuture()
                       : std::min(takes_rest_at_, now + options_.rest_waits);
  return cut;
}

void DataFollower::LookAtTopic() {
  const absl::StatusOr<std::vector<PartitionOffsets>> offsets =
      options_.topic->Offsets();
  if (absl::IsUnavailable(offsets.status())) {
    look_.trouble = std::string(offsets.status().message());
    LOG_EVERY(WARNING, kLogInterval)
        << "can't look for new records: " << look_.trouble;
    return;
  }
  if (!offsets.ok()) {
    look_.failure = absl::InvalidArgumentError(
        absl::StrCat("train.follow: ", offsets.status().message()));
    return;
  }
  while (true) {
    const std::optional<SliceCut> cut = Cut(*offsets);
    if (!cut || !cut->slice) return;
    was_full_ = !has_room_;
    if (was_full_ || IsStopping()) return;
    // To bring it may take long.
    has_room_ = options_.on_look(look_);
    if (!Take(cut->slice->Name())) return;
    if (cut->deleted > 0) LeaveOut(cut->deleted_why);
  }
}

void DataFollower::LookAtFolders() {
  const absl::Time start = clock_.Now();
  auto first = NamesOfGrowingSet(options_.data_dir, patterns_);
  auto second =
      first.ok() && !first->empty() && first->back() > files_.last_path()
          ? NamesOfGrowingSet(options_.data_dir, patterns_)
          : first;
  listing_ = clock_.Now() - start;
  for (const auto* names : {&first, &second}) {
    if (names->ok()) continue;
    look_.trouble = std::string(names->status().message());
    LOG_EVERY(WARNING, kLogInterval)
        << "can't look for new files: " << look_.trouble;
    return;
  }
  const NewFiles::Found found = names_.Look(*first, *second);
  const bool is_first = !std::exchange(has_looked_, true);
  for (const std::string& name : found.late) {
    LeaveOut(absl::StrCat(
        OneLine(name), " has come too late: ", OneLine(files_.last_path()),
        ", whose name is greater, was taken before",
        is_first ? "; or the chief before this one has left it out" : ""));
  }
  LookAtSizes();
  look_.left = static_cast<int64_t>(found.fresh.size());
  // To count them may take long.
  if (look_.left > 0) has_room_ = options_.on_look(look_);
  for (const std::string& name : found.fresh) {
    was_full_ = !has_room_;
    if (was_full_ || IsStopping() || !Take(name)) return;
    --look_.left;
  }
}

void DataFollower::LookAtSizes() {
  const auto size_of =
      [this](const std::string& name) -> std::optional<int64_t> {
    struct stat file = {};
    const std::string path = JoinedPath(options_.data_dir, name);
    if (stat(path.c_str(), &file) != 0) return std::nullopt;
    return file.st_size;
  };
  for (const GrownFiles::Grown& file : sizes_.Look(size_of)) {
    LeaveOut(absl::StrCat(
        OneLine(file.name), " has ", file.bytes, " bytes, but had ",
        file.taken_bytes,
        " when it was taken, and what has come since is not trained: write a "
        "file under another name, and rename it when it is whole"));
  }
}

bool DataFollower::Take(const std::string& name) {
  const bool is_slice = options_.topic != nullptr;
  const Counted counted = is_slice ? CountSlice(name) : Count(name);
  if (IsStopping()) return false;
  switch (counted.kind) {
    case Counted::Kind::kLater:
      look_.trouble = counted.why;
      LOG_EVERY(WARNING, kLogInterval) << "waits for a file: " << counted.why;
      return false;
    case Counted::Kind::kFailed:
      look_.failure = absl::InvalidArgumentError(
          absl::StrCat("train.follow: ", counted.why));
      return false;
    case Counted::Kind::kLeftOut:
      // The next slice follows this one, so it is taken, without records.
      if (is_slice) break;
      LeaveOut(counted.why);
      names_.Take(name);
      return true;
    case Counted::Kind::kWhole:
      break;
  }
  const durable::FollowedFile file =
      files_.Next(name, counted.bytes, counted.records,
                  std::max(1, options_.dataset.batch_size()));
  absl::Status recorded = options_.check_owner();
  if (recorded.ok()) recorded = log_.Append(file, options_.check_owner);
  if (recorded.ok()) recorded = files_.Add(file);
  if (!recorded.ok()) {
    look_.trouble =
        absl::StrCat("can't record ", OneLine(name), ": ", recorded.message());
    LOG_EVERY(WARNING, kLogInterval) << look_.trouble;
    return false;
  }
  files_.Forget(files_.batches());
  if (!is_slice) {
    names_.Take(name);
    sizes_.Take(name, counted.bytes);
  } else if (!counted.why.empty()) {
    // Once: a slice that can't be recorded is counted again.
    LeaveOut(counted.why);
  }
  LOG(INFO) << "takes " << OneLine(name) << ", " << counted.records
            << " records";
  look_.files = {file};
  has_room_ = options_.on_look(look_);
  look_.files.clear();
  return true;
}

DataFollower::Counted DataFollower::Count(const std::string& name) const {
  using Kind = Counted::Kind;
  const std::string path = JoinedPath(options_.data_dir, name);
  if (!IsUtf8(name)) {
    return {Kind::kFailed, 0, 0,
            absl::StrCat(OneLine(name), ": its name is not UTF-8")};
  }
  struct stat before = {};
  struct stat after = {};
  if (stat(path.c_str(), &before) != 0) {
    const int error = errno;
    const absl::Status folders =
        CheckFoldersOfGrowingSet(options_.data_dir, patterns_);
    if (!folders.ok()) {
      return {Kind::kLater, 0, 0, std::string(folders.message())};
    }
    if (error == ENOENT) {
      return {Kind::kLeftOut, 0, 0,
              absl::StrCat(OneLine(path), " has gone before it was read")};
    }
    // Waiting does not untie a link to itself.
    return {error == ELOOP ? Kind::kLeftOut : Kind::kLater, 0, 0,
            std::string(OpenError(OneLine(path), error).message())};
  }
  if (!S_ISREG(before.st_mode)) {
    return {Kind::kLeftOut, 0, 0, absl::StrCat(OneLine(path), " is no file")};
  }
  const absl::StatusOr<int64_t> records =
      before.st_size == 0 ? 0 : CountRecords(name);
  if (stat(path.c_str(), &after) != 0 || !IsSame(before, after)) {
    return {Kind::kLater, 0, 0,
            absl::StrCat(OneLine(path),
                         " changes while it is read: write it under another "
                         "name, and rename it when it is whole")};
  }
  return OutcomeOf(records, before.st_size, name);
}

DataFollower::Counted DataFollower::CountSlice(const std::string& name) {
  const bool skips = options_.dataset.on_corrupt() == job::Dataset::SKIP;
  const absl::StatusOr<TopicSource::Brought> brought =
      options_.topic->Bring(name, skips);
  if (absl::IsNotFound(brought.status())) {
    // The next look cuts what is still there.
    return {Counted::Kind::kLater, 0, 0,
            std::string(brought.status().message())};
  }
  if (!brought.ok()) return OutcomeOf(brought.status(), 0, name);
  const auto bytes = static_cast<int64_t>(brought->copy->bytes());
  Counted counted = OutcomeOf(
      bytes == 0 ? 0 : CountRecords(brought->copy->uri()), bytes, name);
  if (brought->malformed > 0 && counted.kind == Counted::Kind::kWhole) {
    counted.why =
        absl::StrCat(brought->malformed, " records of a slice, as of ",
                     brought->malformed_why);
  }
  return counted;
}

DataFollower::Counted DataFollower::OutcomeOf(
    const absl::StatusOr<int64_t>& records, int64_t bytes,
    const std::string& name) const {
  using Kind = Counted::Kind;
  if (records.ok()) return {Kind::kWhole, bytes, *records};
  std::string why(records.status().message());
  if (!absl::StrContains(why, name)) why = absl::StrCat(name, ": ", why);
  if (absl::IsUnavailable(records.status()) ||
      absl::IsResourceExhausted(records.status()) ||
      absl::IsPermissionDenied(records.status())) {
    return {Kind::kLater, 0, 0, std::move(why)};
  }
  const bool is_skipped = absl::IsDataLoss(records.status()) &&
                          options_.dataset.on_corrupt() == job::Dataset::SKIP;
  return {is_skipped ? Kind::kLeftOut : Kind::kFailed, 0, 0, std::move(why)};
}

absl::StatusOr<int64_t> DataFollower::CountRecords(
    const std::string& name) const {
  if (options_.count) return options_.count(name);
  InputOptions input;
  input.data_dir = options_.data_dir;
  input.memory.whole = kMostInMemory;
  return InputPipeline::CountExamples(DatasetOfFile(options_.dataset, name),
                                      options_.inputs, input);
}

void DataFollower::LeaveOut(const std::string& why) {
  ++look_.skipped;
  look_.skipped_why = why;
  LOG(WARNING) << (options_.topic == nullptr ? "leaves a file out: "
                                             : "leaves records out: ")
               << why;
}

}  // namespace parasol
