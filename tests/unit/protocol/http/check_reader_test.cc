#include "protocol/http/check_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace weir::http {
namespace {

using store::Op;
using ::testing::StartsWith;

class CheckReaderTest : public ::testing::Test {
 protected:
  Result<CheckReader::Found> Read(std::string body, CheckReader::Ask ask = Op::kCharge) {
    const std::size_t size = body.size();
    body.append(kBodyPadding, 'x');  // what follows must not matter
    return reader_.Read(std::string_view(body).substr(0, size), ask, batch_);
  }

  std::string ErrorOf(const std::string& body, CheckReader::Ask ask = Op::kCharge) {
    const auto found = Read(body, ask);
    EXPECT_FALSE(found.ok()) << body;
    EXPECT_EQ(batch_.size(), 0u) << body;
    return found.ok() ? "" : found.error().message;
  }

  CheckReader reader_;
  CheckBatch batch_;
};

TEST_F(CheckReaderTest, ReadsABareKey) {
  const auto found = Read(R"({"key":"user-123"})");
  ASSERT_TRUE(found.ok());
  EXPECT_FALSE(found->batch);
  ASSERT_EQ(batch_.size(), 1u);
  EXPECT_EQ(batch_.checks()[0].request.key, "user-123");
  EXPECT_EQ(batch_.checks()[0].request.cost, 1);
  EXPECT_EQ(batch_.checks()[0].op, Op::kCharge);
}

TEST_F(CheckReaderTest, ReadsDescriptorsInBothForms) {
  const auto found = Read(R"({"domain":"api","cost":3,"descriptors":[
      {"user":"42","route":"/v1/pay"}, [{"key":"ip","value":"::1"},{"value":"","key":"x"}]]})");
  ASSERT_TRUE(found.ok()) << found.error().message;
  const policy::Request& request = batch_.checks()[0].request;
  EXPECT_EQ(request.domain, "api");
  EXPECT_EQ(request.cost, 3);
  ASSERT_EQ(request.descriptors.size(), 2u);
  ASSERT_EQ(request.descriptors[0].size(), 2u);
  EXPECT_EQ(request.descriptors[0][0].key, "user");
  EXPECT_EQ(request.descriptors[0][0].value, "42");
  EXPECT_EQ(request.descriptors[0][1].key, "route");
  EXPECT_EQ(request.descriptors[0][1].value, "/v1/pay");
  ASSERT_EQ(request.descriptors[1].size(), 2u);
  EXPECT_EQ(request.descriptors[1][0].value, "::1");
  EXPECT_EQ(request.descriptors[1][1].key, "x");
}

TEST_F(CheckReaderTest, ReadsABatchInOrderAndSeveralBodiesIntoOneBatch) {
  ASSERT_TRUE(Read(R"({"key":"first"})").ok());
  const auto found = Read(R"({"checks":[{"key":"a"},{"key":"b\u00fc\n","cost":0}]})");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_TRUE(found->batch);
  EXPECT_EQ(found->first, 1u);
  EXPECT_EQ(found->count, 2u);
  EXPECT_EQ(batch_.checks()[0].request.key, "first");
  EXPECT_EQ(batch_.checks()[1].request.key, "a");
  EXPECT_EQ(batch_.checks()[2].request.key, "b\xc3\xbc\n");
  EXPECT_EQ(batch_.checks()[2].request.cost, 0);
}

TEST_F(CheckReaderTest, TakesAThousandChecksAndNoMore) {
  std::string body = R"({"checks":[{"key":"k"})";
  for (int i = 1; i < 1000; ++i) body += R"(,{"key":"k"})";
  ASSERT_TRUE(Read(body + "]}").ok());
  EXPECT_EQ(batch_.size(), 1000u);
  batch_.Clear();
  EXPECT_EQ(ErrorOf(body + R"(,{"key":"k"}]})"), "checks: at most 1000 in one request");
}

TEST_F(CheckReaderTest, ReadsALeaseForReleaseOnly) {
  ASSERT_TRUE(Read(R"({"key":"k","lease":77})", Op::kRelease).ok());
  EXPECT_EQ(batch_.checks()[0].lease, 77);
  EXPECT_EQ(batch_.checks()[0].op, Op::kRelease);
  batch_.Clear();
  EXPECT_EQ(ErrorOf(R"({"key":"k"})", Op::kRelease),
            "leases: is missing; the response to the check contains it");
  EXPECT_EQ(ErrorOf(R"({"key":"k","leases":"296230c00000000000000007"})"),
            "leases: is not a field of a check; the fields are key, domain, descriptors, cost and "
            "overdraw");
  EXPECT_EQ(ErrorOf(R"({"key":"k","lease":7,"leases":"296230c00000000000000007"})", Op::kRelease),
            "leases: cannot be combined with lease, which is one of them");
  EXPECT_EQ(ErrorOf(R"({"key":"k","leases":7})", Op::kRelease), "leases: must be a string, not 7");
  EXPECT_EQ(ErrorOf(R"({"checks":[{"key":"k","leases":"7"}]})", Op::kRelease),
            "checks[0].leases: must be the string that the check returned");
  batch_.Clear();
  ASSERT_TRUE(Read(R"({"key":"k","leases":"296230c00000000000000007"})", Op::kRelease).ok());
  EXPECT_EQ(batch_.checks()[0].permits, (std::vector<limiter::Permit>{{0x296230c0, 7}}));
  batch_.Clear();
  EXPECT_EQ(ErrorOf(R"({"key":"k","lease":77})"),
            "lease: is not a field of a check; the fields are key, domain, descriptors, cost and "
            "overdraw");
  EXPECT_EQ(ErrorOf(R"({"key":"k","cost":0})", Op::kRefund), "cost: must be at least 1");
}

TEST_F(CheckReaderTest, ACheckMayOverdraw) {
  ASSERT_TRUE(Read(R"({"checks":[{"key":"k","overdraw":true,"cost":7},{"key":"k"}]})").ok());
  EXPECT_EQ(batch_.checks()[0].op, Op::kOverdraw);
  EXPECT_EQ(batch_.checks()[1].op, Op::kCharge);
  batch_.Clear();
  ASSERT_TRUE(Read(R"({"key":"k","overdraw":false})").ok());
  EXPECT_EQ(batch_.checks()[0].op, Op::kCharge);
  batch_.Clear();
  EXPECT_EQ(ErrorOf(R"({"key":"k","overdraw":1})"), "overdraw: must be true or false, not 1");
  EXPECT_EQ(
      ErrorOf(R"({"key":"k","overdraw":true})", Op::kPeek),
      "overdraw: is not a field of this call; the fields are key, domain, descriptors and cost");
}

TEST_F(CheckReaderTest, ReadsReservationsAndSettlements) {
  const CheckReader::Ask reserve(Op::kCharge, true);
  ASSERT_TRUE(
      Read(R"({"checks":[{"key":"k","cost":7},{"key":"k","expiresAfterMs":5000}]})", reserve).ok());
  EXPECT_EQ(batch_.checks()[0].reserve, std::chrono::minutes(10));
  EXPECT_EQ(batch_.checks()[1].reserve, std::chrono::seconds(5));
  batch_.Clear();
  EXPECT_EQ(ErrorOf(R"({"key":"k","cost":0})", reserve), "cost: must be at least 1");
  EXPECT_EQ(ErrorOf(R"({"key":"k","expiresAfterMs":0})", reserve),
            "expiresAfterMs: must be an integer from 1 to 86400000, not 0");
  EXPECT_EQ(ErrorOf(R"({"key":"k","overdraw":true})", reserve),
            "overdraw: is not a field of a reservation; the fields are key, domain, descriptors, "
            "cost and "
            "expiresAfterMs");
  // A check that is reused reserves nothing.
  ASSERT_TRUE(Read(R"({"key":"k"})").ok());
  EXPECT_EQ(batch_.checks()[0].reserve.count(), 0);
  batch_.Clear();
  ASSERT_TRUE(Read(R"({"reservation":"AZ-_","cost":0})", Op::kSettle).ok());
  EXPECT_EQ(batch_.checks()[0].settles, "AZ-_");
  EXPECT_EQ(batch_.checks()[0].request.cost, 0);
  batch_.Clear();
  EXPECT_EQ(ErrorOf(R"({"reservation":"r"})", Op::kSettle), "cost: is missing");
  EXPECT_EQ(ErrorOf(R"({"cost":1})", Op::kSettle), "reservation: is missing");
  EXPECT_EQ(ErrorOf(R"({"reservation":"r","cost":1,"key":"k"})", Op::kSettle),
            "key: is not a field of a settlement; the fields are reservation and cost");
}

TEST_F(CheckReaderTest, NamesTheFieldThatIsWrong) {
  const std::string cost = "cost: must be an integer from 0 to 1099511627776, not ";
  for (const char* value : {"-1", "1099511627777", "1e3", "1.5", "\"1\"", "null", "true",
                            "99999999999999999999999999", "9223372036854775808"}) {
    EXPECT_EQ(ErrorOf(R"({"key":"k","cost":)" + std::string(value) + " }"), cost + value);
  }
  EXPECT_EQ(ErrorOf(R"({"key":"k","cost":[]})"), cost + "an array");
  EXPECT_EQ(ErrorOf(R"({"key":"k","cost":{}})"), cost + "an object");
  EXPECT_EQ(ErrorOf(R"({"key":"k","cost":")" + std::string(60, 'x') + R"("})"),
            cost + '"' + std::string(39, 'x') + "…");
  EXPECT_EQ(ErrorOf(R"({"key":5})"), "key: must be a string, not 5");
  EXPECT_EQ(ErrorOf(R"({"key":""})"), "key: must not be empty");
  EXPECT_EQ(ErrorOf(R"({"key":")" + std::string(1025, 'k') + R"("})"),
            "key: must not be longer than 1024 bytes");
  EXPECT_EQ(ErrorOf(R"({"keys":"k"})"),
            "keys: is not a field of a check; did you mean key? The fields are key, domain, "
            "descriptors, cost and "
            "overdraw");
  EXPECT_EQ(ErrorOf(R"({"key":"k","key":"l"})"), "key: is given twice");
  EXPECT_EQ(ErrorOf(R"({"key":"k","descriptors":[{"a":"b"}]})"),
            "key: cannot be combined with domain or descriptors");
  EXPECT_EQ(ErrorOf(R"({})"), "give either key or descriptors");
  EXPECT_EQ(ErrorOf(R"({"domain":"d"})"), "give either key or descriptors");
  EXPECT_EQ(ErrorOf(R"({"descriptors":{}})"), "descriptors: must be an array");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[]})"), "descriptors: must contain at least one");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{}]})"), "descriptors[0]: must contain at least one entry");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{"a":"b"},5]})"),
            "descriptors[1]: must be an object or an array of {key, value}");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{"user":42}]})"),
            "descriptors[0].user: must be a string of at most 1024 bytes, not 42");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"value":"x"}]]})"), "descriptors[0]: an entry has no key");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"key":"k","value":"x","key":"l"}]]})"),
            "descriptors[0]: key is given twice");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"key":"k","value":"x","value":"x"}]]})"),
            "descriptors[0]: value is given twice");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"key":"k","name":"x"}]]})"),
            "descriptors[0]: must contain objects with key and value");
  EXPECT_EQ(ErrorOf(R"({"checks":5})"), "checks: must be an array");
  EXPECT_EQ(ErrorOf(R"({"checks":[]})"), "checks: must contain at least one check");
  EXPECT_EQ(ErrorOf(R"({"checks":[{"key":"a"},5]})"), "checks[1]: must be an object");
  EXPECT_EQ(ErrorOf(R"({"checks":[{"key":"a"},{"key":"b","cost":-1}]})"),
            "checks[1].cost: must be an integer from 0 to 1099511627776, not -1");
  EXPECT_EQ(ErrorOf(R"({"checks":[{"key":"a"}],"key":"b"})"),
            "checks: must be the only field of the body");
  EXPECT_EQ(ErrorOf(R"({"key":"b","checks":[{"key":"a"}]})"),
            "checks: must be the only field of the body");
  EXPECT_EQ(ErrorOf("[]"), "the body must be a JSON object");
  EXPECT_EQ(ErrorOf("17"), "the body must be a JSON object");
}

TEST_F(CheckReaderTest, RefusesWhatIsNotJson) {
  for (const char* body :
       {"{", "{\"key\"", "{\"key\":\"a\"", "{\"key\":\"a\"}}", "{\"key\":\"a\"} x",
        "{\"key\":\"a\",}", "{\"key\" \"a\"}", "{\"key\":\"a\" \"cost\":1}", "{'key':'a'}",
        "{\"key\":\"\\x\"}", "{\"key\":\"\\ud800\"}", "{\"key\":\"\xff\"}",
        "{\"checks\":[{\"key\":\"a\"]}", "{\"key\":\"a\n\"}", "{\"descriptors\":[{\"a\":\"b\"]}",
        "{\"key\":\"a\"}{\"key\":\"b\"}"}) {
    EXPECT_THAT(ErrorOf(body), StartsWith("the body is not well-formed JSON: line ")) << body;
  }
  EXPECT_EQ(ErrorOf("{\"key\":\"a\""),
            "the body is not well-formed JSON: line 1, column 11: the text ends here; expected ',' "
            "or '}'");
  EXPECT_NE(ErrorOf(""), "");
  // Deeper nesting than any field has is refused immediately because of its type.
  EXPECT_NE(ErrorOf("{\"descriptors\":" + std::string(100'000, '[') + "}"), "");
}

TEST_F(CheckReaderTest, BoundsWhatADescriptorHolds) {
  const auto repeated = [](const std::string& one, int times) {
    std::string all = one;
    for (int i = 1; i < times; ++i) all += "," + one;
    return all;
  };
  EXPECT_EQ(ErrorOf(R"({"descriptors":[)" + repeated(R"({"a":"b"})", 17) + "]}"),
            "descriptors: at most 16");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{)" + repeated(R"("a":"b")", 17) + "}]}"),
            "descriptors[0]: at most 16 entries");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[)" + repeated(R"({"key":"a","value":"b"})", 17) + "]]}"),
            "descriptors[0]: at most 16 entries");
  const std::string name = "descriptors[0]: a name must have 1 to 255 bytes";
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{"":"b"}]})"), name);
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{")" + std::string(256, 'n') + R"(":"b"}]})"), name);
  EXPECT_EQ(ErrorOf(R"({"descriptors":[{"a":")" + std::string(1025, 'v') + R"("}]})"),
            "descriptors[0].a: must be a string of at most 1024 bytes");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"key":"","value":"b"}]]})"),
            "descriptors[0].key: must not be empty");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[[{"key":"a","value":5}]]})"),
            "descriptors[0].a: must be a string of at most 1024 bytes, not 5");
  EXPECT_EQ(ErrorOf(R"({"descriptors":[["a"]]})"),
            "descriptors[0]: must contain objects with key and value");
}

// The same broken JSON at every place where a value or a field may be. Where a value of one type
// is expected, anything else gets an error about the type.
TEST_F(CheckReaderTest, RefusesBrokenJsonWhereverItStands) {
  for (const char* body : {
           R"({"key":nope})",
           R"({"cost":})",
           R"({"cost":nul})",
           R"({"overdraw":tru})",
           R"({"checks":nope})",
           R"({"checks":[nope]})",
           R"({"checks":[{"key":"a"},]})",
           R"({"checks":[{nope}]})",
           R"({"checks":[{"\x":"a"}]})",
           R"({"\x":"a"})",
           R"({nope})",
           R"({"descriptors":nope})",
           R"({"descriptors":[nope]})",
           R"({"descriptors":[{nope}]})",
           R"({"descriptors":[{"\x":"a"}]})",
           R"({"descriptors":[{"a":nope}]})",
           R"({"descriptors":[[nope]]})",
           R"({"descriptors":[[{nope}]]})",
           R"({"descriptors":[[{"\x":"a"}]]})",
           R"({"descriptors":[[{"key":nope}]]})",
           R"({"descriptors":[[{"key":"a","value":nope}]]})",
       }) {
    EXPECT_NE(ErrorOf(body), "") << body;
  }
  EXPECT_EQ(ErrorOf(R"({"key":"k","leases":nope})", Op::kRelease),
            "leases: must be a string, not nope");
}

TEST_F(CheckReaderTest, NamesUnknownFieldsOfEveryCall) {
  EXPECT_EQ(
      ErrorOf(R"({"key":"k","x":1})", Op::kRelease),
      "x: is not a field of a release; the fields are key, domain, descriptors, lease, leases and "
      "cost");
  EXPECT_EQ(
      ErrorOf(R"({"key":"k","reservation":"r"})"),
      "reservation: is not a field of a check; the fields are key, domain, descriptors, cost and "
      "overdraw");
  EXPECT_EQ(
      ErrorOf(R"({"key":"k","expiresAfterMs":5})"),
      "expiresAfterMs: is not a field of a check; the fields are key, domain, descriptors, cost "
      "and overdraw");
  EXPECT_EQ(ErrorOf(R"({"key":"k","domain":"d"})"),
            "key: cannot be combined with domain or descriptors");
  EXPECT_EQ(ErrorOf(R"({"checks":[{"key":"k"}],"checks":[{"key":"k"}]})"),
            "checks: must be the only field of the body");
}

}  // namespace
}  // namespace weir::http
