#include "chief/kubeflow/testing/https_stub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/socket.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/log.h"

namespace parasol {
namespace {

// Writes a certificate for 127.0.0.1, signed by its own key, to `path`, and has
// the context use both.
void UseOwnCertificate(const std::string& path, SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("stub"), -1,
                             -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(
      nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
  CHECK(X509_sign(certificate, key, EVP_sha256()) > 0);
  FILE* file = fopen(path.c_str(), "w");
  CHECK(file != nullptr && PEM_write_X509(file, certificate) == 1) << path;
  fclose(file);
  CHECK(SSL_CTX_use_certificate(context, certificate) == 1);
  CHECK(SSL_CTX_use_PrivateKey(context, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

// Returns the value of a header in the lines of a head; empty: not there.
std::string HeaderOf(const std::vector<std::string>& lines,
                     const std::string& name) {
  for (const std::string& line : lines) {
    if (absl::StartsWithIgnoreCase(line, name + ": ")) {
      return line.substr(name.size() + 2);
    }
  }
  return "";
}

// Reads one request; nullopt: the client has left.
std::optional<HttpsStub::Request> ReadRequest(SSL* connection) {
  std::string text;
  char part[4096];
  while (true) {
    const int read = SSL_read(connection, part, sizeof(part));
    if (read <= 0) return std::nullopt;
    text.append(part, read);
    const size_t head = text.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    const std::vector<std::string> lines =
        absl::StrSplit(text.substr(0, head), "\r\n");
    int length = 0;
    CHECK(absl::SimpleAtoi(HeaderOf(lines, "Content-Length"), &length));
    if (text.size() < head + 4 + length) continue;
    const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
    return HttpsStub::Request{.path = words[1],
                              .authorization = HeaderOf(lines, "Authorization"),
                              .body = text.substr(head + 4)};
  }
}

}  // namespace

HttpsStub::HttpsStub(const std::string& directory, Answer answer)
    : answer_(std::move(answer)),
      ca_file_(directory + "/stub.pem"),
      context_(SSL_CTX_new(TLS_server_method())),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  signal(SIGPIPE, SIG_IGN);
  UseOwnCertificate(ca_file_, context_.get());
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  CHECK(bind(listener_.get(), generic, size) == 0);
  CHECK(listen(listener_.get(), 8) == 0);
  CHECK(getsockname(listener_.get(), generic, &size) == 0);
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Run(); });
}

HttpsStub::~HttpsStub() {
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void HttpsStub::Run() {
  while (true) {
    const Descriptor client(accept(listener_.get(), nullptr, nullptr));
    if (client.get() < 0) return;
    const std::unique_ptr<SSL, Free> connection(SSL_new(context_.get()));
    SSL_set_fd(connection.get(), client.get());
    if (SSL_accept(connection.get()) == 1) Serve(connection.get());
  }
}

void HttpsStub::Serve(SSL* connection) {
  const std::optional<Request> request = ReadRequest(connection);
  if (!request) return;
  const std::optional<std::string> answer = answer_(*request);
  if (!answer) {
    // Until the client has enough.
    char byte = 0;
    SSL_read(connection, &byte, 1);
    return;
  }
  const std::string text =
      absl::StrCat("HTTP/1.1 ", *answer, "\r\nContent-Length: 0\r\n\r\n");
  SSL_write(connection, text.data(), static_cast<int>(text.size()));
  SSL_shutdown(connection);
}

}  // namespace parasol
