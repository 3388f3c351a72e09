import { packageConfig } from "@turnkeeper/vitest-config";

export default packageConfig("store-faults");
