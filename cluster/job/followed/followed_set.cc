#include "cluster/job/followed/followed_set.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/field_checks.h"
#include "base/shown_text.h"
#include "base/uri/topic_uri.h"
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

// Returns a topic as people are shown it; one with credentials is not.
std::string ShownTopic(const std::string& pattern) {
  return absl::StrContains(pattern, '@') ? "kafka://" : ShownText(pattern);
}

// Whether a set may be a topic, whose values are records without a file.
absl::Status ValidateTopic(const job::Dataset& train,
                           const std::string& pattern) {
  const absl::StatusOr<TopicUri> topic = ParseTopicUri(pattern);
  if (!topic.ok()) {
    return Fault("train.follow", absl::StrCat(ShownTopic(pattern), ": ",
                                              topic.status().message()));
  }
  if (PatternsOf(train)->size() > 1) {
    return Fault("train.follow",
                 absl::StrCat(ShownTopic(pattern),
                              ": a set is one topic and nothing else; remove "
                              "the other files"));
  }
  if (train.has_parquet() || train.has_cifar()) {
    return Fault("train.follow",
                 absl::StrCat(ShownTopic(pattern),
                              ": records of a topic are tfrecord, csv, "
                              "libsvm, criteo or ratings"));
  }
  if (train.has_csv() && train.csv().column().empty()) {
    return Fault("train.csv.column",
                 "a topic has no header; name the columns of its records");
  }
  if (train.has_csv() && train.csv().skip_lines() > 0) {
    return Fault("train.csv.skip_lines",
                 "a topic has no lines before its records; remove it");
  }
  return absl::OkStatus();
}

// Whether a set that does not grow is a topic.
absl::Status RefuseTopic(const std::string& name, const job::Dataset& dataset) {
  const Patterns* const patterns = PatternsOf(dataset);
  if (dataset.follow() || patterns == nullptr) return absl::OkStatus();
  for (const std::string& pattern : *patterns) {
    if (!IsTopicUri(pattern)) continue;
    return Fault(name,
                 absl::StrCat(ShownTopic(pattern),
                              ": a topic has no end: only train can be one, "
                              "with train.follow: true"));
  }
  return absl::OkStatus();
}

absl::Status ValidateSource(const job::Dataset& train) {
  const Patterns* const patterns = PatternsOf(train);
  if (patterns == nullptr) {
    return Fault("train.follow",
                 "this format can't be followed: use csv, criteo, ratings, "
                 "libsvm, tfrecord, parquet or cifar");
  }
  for (const std::string& pattern : *patterns) {
    if (IsTopicUri(pattern)) return ValidateTopic(train, pattern);
    if (!absl::StrContains(pattern, "://")) continue;
    return Fault(
        "train.follow",
        absl::StrCat(
            ShownText(pattern),
            ": object stores and web servers are not followed; bring the "
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

std::optional<std::string> FollowedTopic(const job::Dataset& dataset) {
  const Patterns* const patterns = PatternsOf(dataset);
  if (!dataset.follow() || patterns == nullptr || patterns->size() != 1 ||
      !IsTopicUri(patterns->Get(0))) {
    return std::nullopt;
  }
  return patterns->Get(0);
}

bool AreOneFollowedSet(const job::Dataset& one, const job::Dataset& other) {
  if (FilePatterns(one) == FilePatterns(other)) return true;
  const auto topic_of = [](const job::Dataset& dataset) -> std::string {
    const absl::StatusOr<TopicUri> topic =
        ParseTopicUri(FollowedTopic(dataset).value_or(""));
    return topic.ok() ? topic->topic : "";
  };
  const std::string topic = topic_of(one);
  return !topic.empty() && topic == topic_of(other);
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
  faults.Add(RefuseTopic("train", train));
  faults.Add(RefuseTopic("eval", job.eval()));
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
