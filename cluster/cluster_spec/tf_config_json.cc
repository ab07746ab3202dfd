#include "cluster/cluster_spec/tf_config_json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "cluster/cluster_spec/address.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::json;
using Tasks = std::map<int, std::string>;

constexpr size_t kMaxQuotedBytes = 100;

// `value` as one line of ASCII for an error.
std::string Quote(const Json& value) {
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                Json::error_handler_t::replace);
  if (text.size() > kMaxQuotedBytes) {
    text.resize(kMaxQuotedBytes);
    text += "...";
  }
  return text;
}

absl::Status Fault(absl::string_view key, const Json& value,
                   absl::string_view rule) {
  return absl::InvalidArgumentError(
      absl::StrCat(key, ": ", Quote(value), " is not ", rule));
}

// The member `key`, or nullptr where it is absent or null.
const Json* Find(const Json& object, const char* key) {
  const auto member = object.find(key);
  if (member == object.end() || member->is_null()) return nullptr;
  return &*member;
}

std::optional<int> DigitsToIndex(absl::string_view digits) {
  int index = 0;
  if (digits.empty() ||
      !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit) ||
      !absl::SimpleAtoi(digits, &index)) {
    return std::nullopt;
  }
  return index;
}

absl::StatusOr<int> ReadIndex(const Json& value) {
  std::optional<int> index;
  if (value.is_string()) {
    index = DigitsToIndex(value.get_ref<const std::string&>());
  } else if (value.is_number_unsigned() &&
             value.get<uint64_t>() <= std::numeric_limits<int>::max()) {
    index = value.get<int>();
  }
  if (index.has_value()) return *index;
  return Fault("task.index", value,
               "an integer from 0 to 2147483647, or a string of its digits");
}

absl::StatusOr<Role> ReadType(const Json& value) {
  if (value.is_string()) {
    const auto& name = value.get_ref<const std::string&>();
    if (name == "master") return Role::kChief;
    if (const auto role = RoleNamed(name); role.has_value()) return *role;
  }
  return Fault("task.type", value,
               "one of \"chief\", \"worker\", \"ps\", \"evaluator\"");
}

absl::Status ReadTask(const Json& task, TfConfigJson& config) {
  if (!task.is_object()) return Fault("task", task, "an object");
  if (const Json* type = Find(task, "type")) {
    ASSIGN_OR_RETURN(config.type, ReadType(*type));
    config.type_name = type->get<std::string>();
  }
  if (const Json* index = Find(task, "index")) {
    ASSIGN_OR_RETURN(config.index, ReadIndex(*index));
  }
  return absl::OkStatus();
}

// Reads the value of "cluster" or "sparseCluster".
class ClusterReader {
 public:
  // `key` is the name of that member, for errors.
  explicit ClusterReader(absl::string_view key) : key_(key) {}

  absl::StatusOr<ClusterSpec> Read(const Json& cluster) && {
    if (!cluster.is_object()) {
      return Fault(key_, cluster, "an object of jobs");
    }
    for (const auto& [name, value] : cluster.items()) {
      RETURN_IF_ERROR(ReadJob(name, value));
    }
    return std::move(cluster_);
  }

 private:
  absl::Status ReadJob(const std::string& name, const Json& value) {
    const std::optional<Role> role =
        name == "master" ? Role::kChief : RoleNamed(name);
    if (!role.has_value()) {
      return Fault(key_, name,
                   "a job: these are chief, worker, ps and evaluator");
    }
    const std::string path = absl::StrCat(key_, ".", name);
    ASSIGN_OR_RETURN(Tasks tasks, ReadTasks(path, value));
    if (tasks.empty()) return absl::OkStatus();
    if (*role == Role::kChief) cluster_.chief_key = path;
    if (!cluster_.jobs.emplace(*role, std::move(tasks)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          key_, ": has both \"chief\" and \"master\", its old name"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Tasks> ReadTasks(const std::string& path, const Json& value) {
    Tasks tasks;
    if (value.is_null()) return tasks;
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        const std::string element = absl::StrCat(path, "[", i, "]");
        ASSIGN_OR_RETURN(tasks[static_cast<int>(i)],
                         ReadAddress(element, value[i]));
      }
      return tasks;
    }
    if (!value.is_object()) {
      return Fault(path, value,
                   "a list of addresses, an object of index to address, or "
                   "null");
    }
    for (const auto& [digits, address] : value.items()) {
      const std::string element = absl::StrCat(path, "[", Quote(digits), "]");
      const std::optional<int> index = DigitsToIndex(digits);
      if (!index.has_value()) {
        return Fault(path, digits, "an index from 0 to 2147483647");
      }
      ASSIGN_OR_RETURN(std::string host_port, ReadAddress(element, address));
      if (!tasks.emplace(*index, std::move(host_port)).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": index ", *index, " appears twice, once as ",
                         Quote(digits)));
      }
    }
    return tasks;
  }

  absl::StatusOr<std::string> ReadAddress(const std::string& path,
                                          const Json& value) {
    if (!value.is_string()) return Fault(path, value, "an address");
    const auto& address = value.get_ref<const std::string&>();
    ASSIGN_OR_RETURN(std::string canonical, CanonicalAddress(address),
                     _ << path);
    const auto [other, is_new] = seen_.emplace(std::move(canonical), path);
    if (!is_new) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": ", Quote(value),
                                                     " is the address of ",
                                                     other->second, " too"));
    }
    return address;
  }

  const absl::string_view key_;
  ClusterSpec cluster_;
  // Canonical address to the key where it was read.
  absl::flat_hash_map<std::string, std::string> seen_;
};

absl::StatusOr<Json> ParseObject(absl::string_view text) {
  ASSIGN_OR_RETURN(Json json, ParseStrictJson(text));
  if (json.is_object()) return json;
  return absl::InvalidArgumentError(
      absl::StrCat("line 1, column 1: ", Quote(json), " is not an object"));
}

}  // namespace

absl::StatusOr<ClusterSpec> ReadClusterJson(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  const Json* cluster = Find(json, "cluster");
  if (cluster == nullptr) return ClusterReader("cluster").Read(json);
  if (json.size() == 1) return ClusterReader("cluster").Read(*cluster);
  return absl::InvalidArgumentError(
      "cluster: it is a member, and so are other keys; the file has the jobs, "
      "or \"cluster\" alone");
}

absl::StatusOr<TfConfigJson> ReadTfConfigJson(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  if (const auto rpc_layer = json.find("rpc_layer");
      rpc_layer != json.end() && *rpc_layer != "grpc") {
    return Fault("rpc_layer", *rpc_layer, "\"grpc\"");
  }
  TfConfigJson config;
  if (const Json* task = Find(json, "task")) {
    RETURN_IF_ERROR(ReadTask(*task, config));
  }
  for (const char* key : {"cluster", "sparseCluster"}) {
    const Json* cluster = Find(json, key);
    if (cluster == nullptr) continue;
    ASSIGN_OR_RETURN(config.cluster, ClusterReader(key).Read(*cluster));
    break;
  }
  return config;
}

}  // namespace parasol
