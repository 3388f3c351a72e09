import { packageConfig } from "@turnkeeper/vitest-config";

export default packageConfig("state-store-postgres");
