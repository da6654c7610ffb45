// Names of time zones that the library reads as paths: opening a named pipe blocks
// until something writes to it.

#include <sys/stat.h>

#include "e2e/service/fixture.h"

namespace weir::test {
namespace {

class Zones : public ServiceTest {};

TEST_F(Zones, AFileIsNotATimeZone) {
  Serve();
  const TempDir folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& zone :
       {"file:" + pipe, std::string("file:/usr/share/zoneinfo/UTC"), std::string("UTC\\u0000")}) {
    HttpClient client = Client();
    EXPECT_EQ(client
                  .Post("/admin/rate-limit/config",
                        R"({"configName":"c","maxPerWindow":1,"windowSize":"PT1S","calendar":)"
                        R"({"zone":")" +
                            zone + R"("}})")
                  .status,
              400)
        << zone;
    EXPECT_EQ(client
                  .Send("PUT", "/api/preferences/u",
                        R"({"quietHours":{"from":"22:00","to":"07:00","zone":")" + zone + R"("}})")
                  .status,
              400)
        << zone;
  }
  EXPECT_EQ(Client().Get("/healthz").status, 200);
}

}  // namespace
}  // namespace weir::test
