#ifndef PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_
#define PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "cluster/cluster_spec/cluster_spec.h"
#include "proto/chief.pb.h"

namespace parasol {

// Returns a number for a process that registers as a task, drawn at random,
// never 0.
uint64_t NewIncarnation();

// Returns the identity under which this process registers: its task, with an
// incarnation drawn at random, never 0. Call it once per process.
wire::Task NewTask(const TaskConfig& config);

// Returns what people find this process by: "host7, process 4242".
std::string NameOfThisProcess();

// Returns `address`, "host:port", with another port: for another server on the
// same host.
std::string WithPort(absl::string_view address, int port);

}  // namespace parasol

#endif  // PARASOL_CLUSTER_CLIENT_TASK_IDENTITY_H_
