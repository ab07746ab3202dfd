#include "loop/peers/start_anew.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

constexpr char kVariable[] = "PARASOL_KEPT_VALUES";

std::vector<std::string> ArgumentsOfProcess() {
  std::ifstream file("/proc/self/cmdline");
  const std::string all((std::istreambuf_iterator<char>(file)),
                        std::istreambuf_iterator<char>());
  return absl::StrSplit(absl::StripSuffix(all, absl::string_view("\0", 1)),
                        '\0');
}

std::vector<std::string> EnvironmentWith(const Descriptor& kept) {
  std::vector<std::string> all;
  const std::string own = absl::StrCat(kVariable, "=");
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!absl::StartsWith(*entry, own)) all.push_back(*entry);
  }
  if (kept.is_open()) all.push_back(absl::StrCat(own, kept.get()));
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& one : strings) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

absl::Status StartAnew(Descriptor kept) {
  std::vector<std::string> arguments = ArgumentsOfProcess();
  std::vector<std::string> environment = EnvironmentWith(kept);
  std::fflush(nullptr);
  // Ports are free for the process that comes.
  close_range(3, UINT_MAX, CLOSE_RANGE_CLOEXEC);
  if (kept.is_open()) fcntl(kept.get(), F_SETFD, 0);
  execve("/proc/self/exe", Pointers(arguments).data(),
         Pointers(environment).data());
  return absl::InternalError(
      absl::StrCat("the process can't start anew: ",
                   absl::ErrnoToStatus(errno, "execve").message()));
}

Descriptor FileKept() {
  const char* const value = std::getenv(kVariable);
  int number = -1;
  if (value == nullptr || !absl::SimpleAtoi(value, &number)) return {};
  unsetenv(kVariable);
  // A child that was given the variable alone has no such file.
  if (number < 3 || fcntl(number, F_SETFD, FD_CLOEXEC) != 0) return {};
  return Descriptor(number);
}

}  // namespace parasol
