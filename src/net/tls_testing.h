// For the tests of this room: certificates, made by the program openssl when they are needed.
//
// They are for localhost and 127.0.0.1, signed by themselves, and good for two days.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "net/net_testing.h"

namespace muster::net {

inline TlsFiles MakeCertificate(const SocketFolder& folder, const std::string& name,
                                const std::string& subject = "DNS:localhost,IP:127.0.0.1") {
  TlsFiles out{.certificate = folder.Path(name + ".pem"), .key = folder.Path(name + ".key")};
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
      "/CN=" +
      name + " -addext subjectAltName=" + subject + " -out " + out.certificate + " -keyout " +
      out.key + " 2>/dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  return out;
}

inline ServerOptions OverTls(const TlsFiles& files) {
  ServerOptions options;
  options.tcp = TcpAddress{};
  options.tls = files;
  return options;
}

inline Endpoint Secure(const HttpServer& server, const TlsFiles& trusted,
                       const std::string& host = "localhost") {
  return {.host = host, .port = server.tcp_port(), .tls = true, .ca_file = trusted.certificate};
}

}  // namespace muster::net
