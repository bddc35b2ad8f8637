#include "net/head.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

int Status(std::vector<Header> headers, const HeadRules& rules = {}) {
  Request request;
  request.headers = std::move(headers);
  const auto refusal = Objection(request, rules);
  return refusal ? refusal->status : 200;
}

TEST(Objection, HasNoneToOrdinaryRequests) {
  EXPECT_EQ(Status({}), 200);
  EXPECT_EQ(Status({{"Host", "a"}, {"Content-Length", "3"}, {"expect", "100-Continue"}}), 200);
  EXPECT_EQ(Status({{"Transfer-Encoding", "Chunked"}}), 200);
}

TEST(Objection, RefusesBodiesWhoseEndIsAMatterOfOpinion) {
  for (const auto& headers : std::vector<std::vector<Header>>{
           {{"Content-Length", "3"}, {"content-length", "3"}},
           {{"Content-Length", "3, 3"}},
           {{"Content-Length", "+3"}},
           {{"Content-Length", ""}},
           {{"Content-Length", "3"}, {"Transfer-Encoding", "chunked"}},
           {{"Transfer-Encoding", "xchunked"}, {"Content-Length", "3"}},
           {{"Transfer-Encoding", "gzip, chunked"}},
           {{"Transfer-Encoding", "chunked, identity"}},
           {{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}},
           {{"Transfer-Encoding",
             "\x0b"
             "chunked"}},
           {{"Host", "a"}, {"Host", "b"}}}) {
    EXPECT_EQ(Status(headers), 400) << headers.front().value;
  }
  EXPECT_EQ(Status({{"Transfer-Encoding", "chunked"}}, {.chunks = false}), 400);
  EXPECT_EQ(Status({{"Expect", "200-maybe"}}), 417);
}

TEST(Objection, RefusesPagesOfOtherSites) {
  const auto from = [](const std::string& origin, const std::string& host) {
    return Status({{"Host", host}, {"Origin", origin}});
  };
  EXPECT_EQ(from("http://localhost:7070", "localhost:7070"), 200);
  EXPECT_EQ(from("https://gpu.example", "GPU.example:443"), 200);
  EXPECT_EQ(from("http://[::1]:7070", "[::1]:7070"), 200);
  EXPECT_EQ(from("http://localhost:7071", "localhost:7070"), 403);
  EXPECT_EQ(from("https://gpu.example", "gpu.example:80"), 403);
  EXPECT_EQ(from("http://evil.example", "localhost:7070"), 403);
  EXPECT_EQ(from("http://localhost.evil.example:7070", "localhost:7070"), 403);
  EXPECT_EQ(from("null", "localhost:7070"), 403);
  EXPECT_EQ(from("", ""), 403);
  EXPECT_EQ(from("http://", ""), 403);
  EXPECT_EQ(Status({{"Origin", "https://gpu.example"}, {"Host", "gpu.example"}},
                   {.names = {"gpu.example"}}),
            200);
  EXPECT_EQ(Status({{"Host", "a"}, {"Origin", "http://a"}, {"Origin", "http://a"}}), 403);
}

TEST(Objection, RefusesNamesItIsNotKnownByOnlyWhenTheyAreConfigured) {
  const HeadRules rules{.names = {"gpu.example", "::1"}};
  EXPECT_EQ(Status({{"Host", "Gpu.Example:7443"}}, rules), 200);
  EXPECT_EQ(Status({{"Host", "[::1]:7443"}}, rules), 200);
  EXPECT_EQ(Status({{"Host", "rebound.evil"}}, rules), 421);
  EXPECT_EQ(Status({{"Host", "[::1"}}, rules), 421);
  EXPECT_EQ(Status({}, rules), 421);
  EXPECT_EQ(Status({{"Host", "anything"}}), 200);
}

TEST(WebSocketKey, IsThatOfACompleteRequestOnly) {
  const Request whole{.headers = {{"Upgrade", "h2c, WebSocket"},
                                  {"Connection", "keep-alive, Upgrade"},
                                  {"Sec-WebSocket-Version", "13"},
                                  {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}}};
  ASSERT_NE(WebSocketKey(whole), nullptr);
  EXPECT_EQ(*WebSocketKey(whole), "dGhlIHNhbXBsZSBub25jZQ==");
  for (std::size_t i = 0; i < whole.headers.size(); ++i) {
    Request part = whole;
    part.headers.erase(part.headers.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(WebSocketKey(part), nullptr) << whole.headers[i].name;
  }
  Request post = whole;
  post.method = "POST";
  EXPECT_EQ(WebSocketKey(post), nullptr);
}

}  // namespace
}  // namespace muster::net
