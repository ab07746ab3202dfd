#ifndef PARASOL_CLUSTER_PROGRESS_FOLLOWED_TEXT_H_
#define PARASOL_CLUSTER_PROGRESS_FOLLOWED_TEXT_H_

#include <string>

#include "proto/chief.pb.h"

// Lines for people about a training set that grows.
namespace parasol {

// Returns "waits for data in clicks/*.csv, since 12s"; `data` has waited.
std::string WaitForData(const wire::FollowedData& data);

// Returns "7 files, the newest 20260101.csv 3m5s ago; 1200 records wait".
std::string FilesOfData(const wire::FollowedData& data);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_PROGRESS_FOLLOWED_TEXT_H_
