#include "loop/peers/kept_state.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"

namespace parasol {
namespace {

constexpr int64_t kMark = 0x70617261736f6c31;

template <typename T>
absl::Span<char> BytesIn(absl::Span<T> values) {
  return absl::MakeSpan(reinterpret_cast<char*>(values.data()),
                        values.size() * sizeof(T));
}

absl::Status WriteAll(int file, absl::Span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no memory for ", bytes.size(), " bytes of the program's values"));
    }
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status ReadAll(int file, absl::Span<char> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = read(file, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      return absl::InvalidArgumentError("the kept values end too early");
    }
    bytes.remove_prefix(got);
  }
  return absl::OkStatus();
}

// The numbers at the beginning of the file.
struct KeptHead {
  int64_t mark = kMark;
  int64_t step = 0;
  int64_t epoch = 0;
  int64_t arrays = 0;
  int64_t elements = 0;  // of all arrays
};

KeptHead KeptHeadOf(const StoredVariables& variables,
                    const GroupState::Version& version) {
  KeptHead head = {.step = version.step, .epoch = version.epoch};
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    head.arrays += variables.num_arrays(i);
    head.elements += variables.num_arrays(i) * variables.specs()[i].elements();
  }
  return head;
}

absl::Status Write(int file, const GroupState::Version& version,
                   StoredVariables& variables) {
  KeptHead head = KeptHeadOf(variables, version);
  RETURN_IF_ERROR(WriteAll(file, BytesIn(absl::MakeSpan(&head, 1))));
  std::vector<int64_t> updates(variables.updates().begin(),
                               variables.updates().end());
  RETURN_IF_ERROR(WriteAll(file, BytesIn(absl::MakeSpan(updates))));
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      ASSIGN_OR_RETURN(const absl::Span<const float> elements,
                       variables.Read(i, array));
      RETURN_IF_ERROR(WriteAll(
          file, absl::MakeSpan(reinterpret_cast<const char*>(elements.data()),
                               elements.size() * sizeof(float))));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupState::Version> Read(int file, StoredVariables& variables) {
  KeptHead head;
  RETURN_IF_ERROR(ReadAll(file, BytesIn(absl::MakeSpan(&head, 1))));
  const KeptHead own = KeptHeadOf(variables, {});
  if (head.mark != kMark || head.arrays != own.arrays ||
      head.elements != own.elements) {
    return absl::InvalidArgumentError(
        "the kept values are of other variables than the program has");
  }
  std::vector<int64_t> updates(variables.specs().size());
  RETURN_IF_ERROR(ReadAll(file, BytesIn(absl::MakeSpan(updates))));
  for (size_t i = 0; i < variables.specs().size(); ++i) {
    variables.SetUpdates(i, updates[i]);
    std::vector<float> elements(variables.specs()[i].elements());
    for (int array = 0; array < variables.num_arrays(i); ++array) {
      RETURN_IF_ERROR(ReadAll(file, BytesIn(absl::MakeSpan(elements))));
      RETURN_IF_ERROR(variables.Write(i, array, elements));
    }
  }
  return GroupState::Version{.step = head.step, .epoch = head.epoch};
}

}  // namespace

absl::StatusOr<Descriptor> KeepState(GroupState& state) {
  Descriptor file(memfd_create("parasol_program", MFD_CLOEXEC));
  if (!file.is_open()) return absl::ErrnoToStatus(errno, "memfd_create");
  RETURN_IF_ERROR(state.Read([&](ParameterStore& parameters) {
    return Write(file.get(), state.version(), parameters.variables());
  }));
  return file;
}

absl::Status TakeKeptState(int file, GroupState& state) {
  if (lseek(file, 0, SEEK_SET) != 0) return absl::ErrnoToStatus(errno, "lseek");
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterStore> parameters,
                   state.MakeParameters());
  ASSIGN_OR_RETURN(const GroupState::Version version,
                   Read(file, parameters->variables()));
  state.Replace(std::move(parameters), version);
  return absl::OkStatus();
}

}  // namespace parasol
