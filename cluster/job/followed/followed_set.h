#ifndef PARASOL_CLUSTER_JOB_FOLLOWED_FOLLOWED_SET_H_
#define PARASOL_CLUSTER_JOB_FOLLOWED_FOLLOWED_SET_H_

#include <optional>
#include <string>
#include <vector>

#include "base/faults.h"
#include "proto/job.pb.h"

// Jobs whose training set grows while they train (Dataset.follow).
namespace parasol {

// Returns the patterns of a data set's files, as the job has them; none if it
// has no list of files.
std::vector<std::string> FilePatterns(const job::Dataset& dataset);

// Returns the patterns of a set that grows as people are shown them.
std::string FollowedPattern(const job::Dataset& dataset);

// Returns the URI of the topic that a set that grows is; nullopt: it is files.
std::optional<std::string> FollowedTopic(const job::Dataset& dataset);

// Returns true if a run that has followed one of the sets goes on with the
// other: they have the same patterns, or are one topic, of whichever brokers.
bool AreOneFollowedSet(const job::Dataset& one, const job::Dataset& other);

// Returns `dataset` with this one file, whose examples are trained in an order
// of its own.
job::Dataset DatasetOfFile(const job::Dataset& dataset,
                           const std::string& path);

// Returns what in a job, its defaults filled in, stands against following its
// training set, and against an end that never comes.
Faults ValidateFollow(const job::Job& job);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_JOB_FOLLOWED_FOLLOWED_SET_H_
