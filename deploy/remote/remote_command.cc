#include "deploy/remote/remote_command.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace parasol {
namespace {

// Options after the user's own, which ssh takes if there are both. A lost
// connection is found after 75 s of silence: later than by the guard.
constexpr absl::string_view kSshOptions[] = {
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=20",
    "-o",
    "ServerAliveInterval=15",
    "-o",
    "ServerAliveCountMax=5",
};

bool IsPlain(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
         absl::StrContains("_-./:=,@+", c);
}

// The line that the shell of the user there gets.
std::string CommandLine(const RemoteCommand& command) {
  std::string line = absl::StrCat(
      "exec ", ShellQuoted(command.guard),
      " --takes_token --tf_config=", ShellQuoted(command.tf_config), " --");
  for (const std::string& word : command.argv) {
    absl::StrAppend(&line, " ", ShellQuoted(word));
  }
  return line;
}

}  // namespace

std::string ShellQuoted(absl::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), IsPlain)) {
    return std::string(text);
  }
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", R"('\'')"}}), "'");
}

std::vector<std::string> SshArgv(const RemoteCommand& command) {
  // The shell splits the user's words and finds the program, as for rsync -e.
  std::vector<std::string> argv = {
      "/bin/sh", "-c", absl::StrCat("exec ", command.ssh, " \"$@\""), "ssh"};
  for (const absl::string_view option : kSshOptions) {
    argv.emplace_back(option);
  }
  absl::string_view host = command.host;
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  argv.emplace_back(host);
  argv.push_back(CommandLine(command));
  return argv;
}

}  // namespace parasol
