#include "cluster/collective/rank_hello.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/crc32c.h"

namespace parasol {
namespace {

constexpr absl::string_view kHelloMagic = "PCLrank3";
// What the hellos of all versions begin with.
constexpr absl::string_view kAnyHelloMagic = kHelloMagic.substr(0, 7);
constexpr size_t kCheckedHelloBytes = RankHello::kBytes - sizeof(uint64_t);

template <typename T>
void Append(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T Take(absl::string_view& from) {
  T value;
  std::memcpy(&value, from.data(), sizeof(value));
  from.remove_prefix(sizeof(value));
  return value;
}

}  // namespace

RankHello RankHello::Of(const CollectiveGroup& group, int to) {
  RankHello hello;
  hello.epoch = group.epoch;
  hello.members = FingerprintOfMembers(group);
  hello.from = group.own_rank;
  hello.to = to;
  return hello;
}

std::string RankHello::Encode() const {
  std::string bytes(kHelloMagic);
  Append(bytes, epoch);
  Append(bytes, members);
  Append(bytes, static_cast<int32_t>(from));
  Append(bytes, static_cast<int32_t>(to));
  bytes += nonce;
  bytes.resize(kCheckedHelloBytes);
  Append(bytes, static_cast<uint64_t>(Crc32cOf(bytes)));
  return bytes;
}

std::optional<RankHello> RankHello::Parse(absl::string_view bytes) {
  if (bytes.size() < kBytes || IsOther(bytes)) return std::nullopt;
  absl::string_view check = bytes.substr(kCheckedHelloBytes);
  if (Take<uint64_t>(check) != Crc32cOf(bytes.substr(0, kCheckedHelloBytes))) {
    return std::nullopt;
  }
  bytes.remove_prefix(kHelloMagic.size());
  RankHello hello;
  hello.epoch = Take<int64_t>(bytes);
  hello.members = Take<uint64_t>(bytes);
  hello.from = Take<int32_t>(bytes);
  hello.to = Take<int32_t>(bytes);
  hello.nonce = std::string(bytes.substr(0, kNonceBytes));
  return hello;
}

bool RankHello::IsOther(absl::string_view bytes) {
  const size_t known = std::min(bytes.size(), kHelloMagic.size());
  return bytes.substr(0, known) != kHelloMagic.substr(0, known);
}

bool RankHello::IsOfOtherVersion(absl::string_view bytes) {
  return bytes.size() >= kHelloMagic.size() && IsOther(bytes) &&
         absl::StartsWith(bytes, kAnyHelloMagic);
}

uint64_t FingerprintOfMembers(const CollectiveGroup& group) {
  std::string text;
  for (const CollectiveRank& rank : group.ranks) {
    absl::StrAppend(&text, rank.address, "=", absl::StrJoin(rank.replicas, ","),
                    ";");
  }
  if (group.planner != nullptr) absl::StrAppend(&text, group.planner->name());
  uint64_t fingerprint = 0xcbf29ce484222325;
  for (const char c : text) {
    fingerprint =
        (fingerprint ^ static_cast<unsigned char>(c)) * uint64_t{0x100000001b3};
  }
  return fingerprint;
}

HelloAnswer AnswerTo(const RankHello& hello,
                     const std::optional<CollectiveGroup>& group) {
  if (!group.has_value() || hello.epoch > group->epoch) {
    return HelloAnswer::kTooEarly;
  }
  if (hello.epoch < group->epoch) return HelloAnswer::kOver;
  const bool is_of_group = hello.members == FingerprintOfMembers(*group) &&
                           hello.to == group->own_rank &&
                           hello.from > group->own_rank &&
                           hello.from < static_cast<int>(group->ranks.size());
  return is_of_group ? HelloAnswer::kChallenge : HelloAnswer::kRefused;
}

}  // namespace parasol
