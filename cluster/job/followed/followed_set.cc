#include "cluster/job/followed/followed_set.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace parasol {
namespace {

using Patterns = google::protobuf::RepeatedPtrField<std::string>;

// Returns the list of files of a format whose files are read one after the
// other; null: it is none.
const Patterns* PatternsOf(const job::Dataset& dataset) {
  switch (dataset.kind_case()) {
    case job::Dataset::kCifar:
      return &dataset.cifar().file();
    case job::Dataset::kLibsvm:
      return &dataset.libsvm().file();
    case job::Dataset::kCsv:
      return &dataset.csv().file();
    case job::Dataset::kCriteo:
      return &dataset.criteo().file();
    case job::Dataset::kRatings:
      return &dataset.ratings().file();
    case job::Dataset::kTfrecord:
      return &dataset.tfrecord().file();
    case job::Dataset::kParquet:
      return &dataset.parquet().file();
    case job::Dataset::kIdx:
    case job::Dataset::kArray:
    case job::Dataset::kCustom:
    case job::Dataset::KIND_NOT_SET:
      break;
  }
  return nullptr;
}

absl::Status ValidateSource(const job::Dataset& train) {
  const Patterns* const patterns = PatternsOf(train);
  if (patterns == nullptr) {
    return Fault("train.follow",
                 "this format can't be followed: use csv, criteo, ratings, "
                 "libsvm, tfrecord, parquet or cifar");
  }
  for (const std::string& pattern : *patterns) {
    if (!absl::StrContains(pattern, "://")) continue;
    return Fault("train.follow",
                 absl::StrCat(ShownText(pattern),
                              ": object stores are not followed; bring the "
                              "files to a folder of all tasks"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> FilePatterns(const job::Dataset& dataset) {
  const Patterns* const patterns = PatternsOf(dataset);
  if (patterns == nullptr) return {};
  return {patterns->begin(), patterns->end()};
}

std::string FollowedPattern(const job::Dataset& dataset) {
  constexpr size_t kMaxShown = 3;
  std::vector<std::string> patterns = FilePatterns(dataset);
  const size_t more =
      patterns.size() > kMaxShown ? patterns.size() - kMaxShown : 0;
  patterns.resize(patterns.size() - more);
  return ShownText(
      absl::StrCat(absl::StrJoin(patterns, ", "),
                   more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

job::Dataset DatasetOfFile(const job::Dataset& dataset,
                           const std::string& path) {
  job::Dataset of_file = dataset;
  of_file.clear_follow();
  auto* const patterns = const_cast<Patterns*>(PatternsOf(of_file));
  patterns->Clear();
  *patterns->Add() = path;
  return of_file;
}

Faults ValidateFollow(const job::Job& job) {
  Faults faults;
  if (job.eval().follow()) {
    faults.Add(Fault("eval.follow", "only train can grow; remove it"));
  }
  const job::TrainingEnd& end = job.end();
  if (end.has_never() && (end.has_steps() || end.has_epochs())) {
    faults.Add(Fault("end.never", "the job has steps or epochs; remove one"));
  }
  const job::Dataset& train = job.train();
  if (!train.follow()) return faults;
  faults.Add(ValidateSource(train));
  if (end.has_epochs()) {
    faults.Add(Fault("end.epochs",
                     "a set that grows (train.follow) has no epochs; use "
                     "end { never {} }, or steps"));
  }
  if (train.has_split()) {
    faults.Add(Fault("train.split",
                     "a set that grows (train.follow) is not split; give the "
                     "files of eval another folder"));
  }
  if (train.auto_shard() == job::Dataset::FILE) {
    faults.Add(Fault("train.auto_shard",
                     "FILE gives workers files of their own, but those of "
                     "train.follow go to whoever is free; remove it"));
  }
  if (job.parameter_server().has_local_steps()) {
    faults.Add(Fault("parameter_server.local_steps",
                     "can't be used with train.follow; remove one"));
  }
  return faults;
}

}  // namespace parasol
