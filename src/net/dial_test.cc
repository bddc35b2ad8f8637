#include "net/dial.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

TEST(ParseEndpoint, KnowsPathsAndAddresses) {
  EXPECT_EQ(ParseEndpoint("/run/m.sock")->unix_path, "/run/m.sock");
  const auto secure = ParseEndpoint("https://gpu.example:7443/");
  ASSERT_TRUE(secure.has_value());
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(secure->host, "gpu.example");
  EXPECT_EQ(secure->port, 7443);
  EXPECT_EQ(Describe(*secure), "gpu.example:7443");
  EXPECT_EQ(ParseEndpoint("https://gpu.example")->port, 443);
  const auto six = ParseEndpoint("http://[::1]:7070");
  ASSERT_TRUE(six.has_value());
  EXPECT_FALSE(six->tls);
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(Describe(*six), "[::1]:7070");
}

TEST(ParseEndpoint, RefusesWhatIsNoneAndTheClearBeyondThisMachine) {
  for (const char* bad :
       {"", "gpu.example:7443", "ftp://a", "https://", "https://a:0", "https://a:65536",
        "https://a:", "https://a:1x", "https://[::1", "https://user@a", "https://a/path",
        "http://gpu.example:7070", "http://127.0.0.1.example"}) {
    const auto endpoint = ParseEndpoint(bad);
    ASSERT_FALSE(endpoint.has_value()) << bad;
    EXPECT_EQ(endpoint.error().code, ErrorCode::kInvalid);
  }
}

}  // namespace
}  // namespace muster::net
