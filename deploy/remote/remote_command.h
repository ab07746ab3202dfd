#ifndef PARASOL_DEPLOY_REMOTE_REMOTE_COMMAND_H_
#define PARASOL_DEPLOY_REMOTE_REMOTE_COMMAND_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace parasol {

// Returns `text` as one word of a shell's command line, whatever it has in it.
std::string ShellQuoted(absl::string_view text);

// A process on another host, under the guard that ends it with its launcher.
struct RemoteCommand {
  // The user's ssh, as a shell's words: "ssh -p 2222".
  std::string ssh;
  // Host's name; an IPv6 address is in brackets.
  std::string host;
  // Path of the guard there (//deploy/remote:remote_task).
  std::string guard;
  // The process's TF_CONFIG.
  std::string tf_config;
  // The command there; argv[0] is a path.
  std::vector<std::string> argv;
};

// Returns the command to run here: it has the other one's outputs and exit
// code, hands its stdin on to the guard, never asks for a password, and ends
// with 255 when the connection fails or is lost.
std::vector<std::string> SshArgv(const RemoteCommand& command);

}  // namespace parasol

#endif  // PARASOL_DEPLOY_REMOTE_REMOTE_COMMAND_H_
