#ifndef PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_
#define PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_

#include <string>

#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "proto/chief.pb.h"

namespace parasol {

// This process as the chief is to know it: its task, with an incarnation drawn
// at random, never 0. Once per process.
wire::Task NewTask(const TaskConfig& config);

// `address`, "host:port", with another port: where the host of a task serves
// something else.
std::string WithPort(absl::string_view address, int port);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_
