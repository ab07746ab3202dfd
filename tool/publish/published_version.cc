#include "tool/publish/published_version.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "cluster/trust/sha256.h"
#include "nlohmann/json.hpp"

namespace parasol {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;
// Values in the member "tensors": a million tensors of up to six dimensions,
// which take four values besides.
constexpr size_t kMaxTensorValues = 10'000'000;
constexpr absl::string_view kNamePrefix = "weight_v";
constexpr VersionFormat kVersionFormats[] = {
    VersionFormat::kFull, VersionFormat::kOverwrite, VersionFormat::kXor};

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// Writes an object with each member on a line of its own, so that people can
// read it.
std::string Lines(const OrderedJson& object, int indent) {
  std::string text = "{";
  for (const auto& [key, value] : object.items()) {
    absl::StrAppend(
        &text, text.size() > 1 ? "," : "", "\n", std::string(indent + 1, ' '),
        Dump(key), ": ",
        value.is_object() && indent == 0 ? Lines(value, 1) : Dump(value));
  }
  return absl::StrCat(text, "\n", std::string(indent, ' '), "}");
}

// Adds a member that is not there, without a look at the others.
void AddMember(OrderedJson& object, const std::string& name,
               OrderedJson value) {
  object.get_ref<OrderedJson::object_t&>().push_back({name, std::move(value)});
}

OrderedJson TensorsJson(const std::vector<PublishedTensor>& tensors) {
  OrderedJson json = OrderedJson::object();
  for (const PublishedTensor& tensor : tensors) {
    AddMember(json, tensor.info.name,
              {{"dtype", std::string(NameOf(tensor.info.type))},
               {"shape", tensor.info.shape},
               {"sha256", tensor.sha256}});
  }
  return json;
}

// Returns a number that is whole and not below 0, and the largest of int64_t
// for what is beyond that; throws if it is another value.
int64_t WholeNumberOf(const Json& json) {
  return static_cast<int64_t>(std::min<uint64_t>(
      json.get_ref<const Json::number_unsigned_t&>(), INT64_MAX));
}

std::vector<int64_t> ShapeFrom(const Json& json) {
  std::vector<int64_t> shape;
  for (const Json& size : json.get_ref<const Json::array_t&>()) {
    shape.push_back(WholeNumberOf(size));
  }
  return shape;
}

// Throws what nlohmann throws if a member is missing or of another type.
PublishedVersion FromJson(const Json& json) {
  PublishedVersion version;
  version.version = WholeNumberOf(json.at("version"));
  if (!json.at("base_version").is_null()) {
    version.base = WholeNumberOf(json.at("base_version"));
    version.base_state = json.at("base_state_sha256").get<std::string>();
  }
  for (const VersionFormat format : kVersionFormats) {
    if (json.at("format") == std::string(NameOf(format))) {
      version.format = format;
    }
  }
  version.step = WholeNumberOf(json.at("step"));
  version.run_id = json.at("run_id").get<std::string>();
  version.job = json.at("job").get<std::string>();
  version.type = ElementTypeOf(json.at("dtype").get<std::string>());
  version.pytorch_layout = json.at("layout") == "pytorch";
  for (const auto& [name, bytes] :
       json.at("files").get_ref<const Json::object_t&>()) {
    version.files[name] = WholeNumberOf(bytes);
  }
  for (const auto& [name, tensor] :
       json.at("tensors").get_ref<const Json::object_t&>()) {
    version.tensors.push_back(
        {.info = {.name = name,
                  .type = ElementTypeOf(tensor.at("dtype").get<std::string>()),
                  .shape = ShapeFrom(tensor.at("shape"))},
         .sha256 = tensor.at("sha256").get<std::string>()});
  }
  return version;
}

absl::StatusOr<Json> MembersOf(absl::string_view text) {
  Json json = Json::object();
  RETURN_IF_ERROR(VisitJsonMembers(
      text,
      [&json](const std::string& name, const Json& value) -> absl::Status {
        if (json.emplace(name, value).second) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(name, " comes twice"));
      },
      kMaxTensorValues));
  return json;
}

}  // namespace

std::string VersionName(int64_t version) {
  return absl::StrFormat("%s%06d", kNamePrefix, version);
}

std::optional<int64_t> VersionOfName(absl::string_view name) {
  int64_t version = 0;
  if (!absl::StartsWith(name, kNamePrefix) ||
      !absl::SimpleAtoi(name.substr(kNamePrefix.size()), &version) ||
      version < 1 || VersionName(version) != name) {
    return std::nullopt;
  }
  return version;
}

absl::string_view NameOf(VersionFormat format) {
  switch (format) {
    case VersionFormat::kFull:
      return "full";
    case VersionFormat::kOverwrite:
      return "overwrite";
    case VersionFormat::kXor:
      break;
  }
  return "xor";
}

std::string StateDigest(const std::vector<PublishedTensor>& tensors) {
  std::vector<std::string> lines;
  for (const PublishedTensor& tensor : tensors) {
    lines.push_back(absl::StrCat(
        tensor.info.name, " ", NameOf(tensor.info.type), " [",
        absl::StrJoin(tensor.info.shape, ","), "] ", tensor.sha256, "\n"));
  }
  std::sort(lines.begin(), lines.end());
  Sha256 digest;
  for (const std::string& line : lines) digest.Add(line);
  return digest.Finish();
}

std::string ManifestText(const PublishedVersion& version) {
  OrderedJson json = {{"format_version", kFormatVersion},
                      {"version", version.version},
                      {"base_version", nullptr},
                      {"format", std::string(NameOf(version.format))},
                      {"codec", version.base ? "zstd" : "none"},
                      {"step", version.step},
                      {"run_id", version.run_id},
                      {"job", version.job},
                      {"dtype", std::string(NameOf(version.type))},
                      {"layout", version.pytorch_layout ? "pytorch" : "keras"},
                      {"state_sha256", StateDigest(version.tensors)},
                      {"base_state_sha256", nullptr},
                      {"files", version.files},
                      {"tensors", TensorsJson(version.tensors)}};
  if (version.base) {
    json["base_version"] = *version.base;
    json["base_state_sha256"] = version.base_state;
  }
  return absl::StrCat(Lines(json, 0), "\n");
}

absl::StatusOr<PublishedVersion> ParseManifest(absl::string_view text,
                                               absl::string_view path) {
  const absl::StatusOr<Json> json = MembersOf(text);
  if (!json.ok()) {
    return absl::DataLossError(
        absl::StrCat(path, ": is damaged: ", json.status().message()));
  }
  try {
    if (json->at("format_version") != kFormatVersion) {
      return absl::DataLossError(absl::StrCat(path, ": has format_version ",
                                              Dump(json->at("format_version")),
                                              ", this program "
                                              "knows ",
                                              kFormatVersion));
    }
    PublishedVersion version = FromJson(*json);
    if (json->at("state_sha256") == StateDigest(version.tensors) &&
        json->at("format") == std::string(NameOf(version.format)) &&
        version.version > 0 &&
        version.base.has_value() == (version.format != VersionFormat::kFull) &&
        version.base.value_or(version.version - 1) == version.version - 1) {
      return version;
    }
  } catch (const Json::exception& error) {
    return absl::DataLossError(
        absl::StrCat(path, ": is damaged: ", error.what()));
  }
  return absl::DataLossError(
      absl::StrCat(path, ": is damaged: it contradicts itself"));
}

std::string IndexText(const PublishedVersion& version,
                      const std::vector<std::string>& names,
                      uint64_t state_bytes) {
  OrderedJson metadata = {{"total_size", state_bytes},
                          {"version", absl::StrFormat("%06d", version.version)},
                          {"step", absl::StrCat(version.step)}};
  if (version.base) {
    metadata["base_version"] = absl::StrFormat("%06d", *version.base);
    metadata["delta_encoding"] = std::string(NameOf(version.format));
    metadata["compression_format"] = "zstd";
    metadata["checksum_format"] = "adler32";
  }
  OrderedJson map = OrderedJson::object();
  for (const std::string& name : names) {
    AddMember(map, name, std::string(kVersionTensors));
  }
  return absl::StrCat(Lines({{"metadata", metadata}, {"weight_map", map}}, 0),
                      "\n");
}

}  // namespace parasol
