#include "support/certificates.h"

#include <stdexcept>
#include <vector>

#include "support/child_process.h"

namespace weir::test {
namespace {

void OpenSsl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const RunResult result = RunProgram(std::move(arguments));
  if (result.exit_code != 0) {
    throw std::runtime_error("openssl failed: " + result.error_output);
  }
}

std::vector<std::string> NewKey(Certificates::Keys keys, const Certificates::Pair& pair) {
  if (keys == Certificates::Keys::kRsa) {
    return {"-newkey", "rsa:2048", "-nodes", "-keyout", pair.key.string()};
  }
  return {"-newkey", "ec",      "-pkeyopt",       "ec_paramgen_curve:prime256v1",
          "-nodes",  "-keyout", pair.key.string()};
}

void SelfSign(Certificates::Keys keys, const std::string& name, const Certificates::Pair& pair) {
  std::vector<std::string> arguments = {"req",   "-x509",       "-days", "2",
                                        "-subj", "/CN=" + name, "-out",  pair.certificate.string()};
  const std::vector<std::string> key = NewKey(keys, pair);
  arguments.insert(arguments.end(), key.begin(), key.end());
  OpenSsl(std::move(arguments));
}

}  // namespace

Certificates::Certificates(Keys keys) : keys_(keys) { SelfSigned("Weir test authority", "ca"); }

Certificates::Pair Certificates::SelfSigned(const std::string& name, const std::string& file) {
  Pair pair{dir_ / (file + ".pem"), dir_ / (file + ".key")};
  SelfSign(keys_, name, pair);
  return pair;
}

Certificates::Pair Certificates::Issue(const std::string& name, const std::string& file,
                                       const std::string& more_names) {
  Pair pair{dir_ / (file + ".pem"), dir_ / (file + ".key")};
  const std::string request = (dir_ / (file + ".csr")).string();
  const std::string names =
      "DNS:localhost,IP:127.0.0.1" + (more_names.empty() ? "" : "," + more_names);
  const std::string extensions =
      dir_.Write(file + ".ext", "subjectAltName=" + names + "\n").string();
  std::vector<std::string> arguments = {"req", "-new", "-subj", "/CN=" + name, "-out", request};
  const std::vector<std::string> key = NewKey(keys_, pair);
  arguments.insert(arguments.end(), key.begin(), key.end());
  OpenSsl(std::move(arguments));
  OpenSsl({"x509", "-req", "-days", "2", "-in", request, "-CA", authority().string(), "-CAkey",
           (dir_ / "ca.key").string(), "-CAcreateserial", "-extfile", extensions, "-out",
           pair.certificate.string()});
  return pair;
}

}  // namespace weir::test
